"""The properties that the campaign holds the program to, by the numbers that tests and docs use."""

from __future__ import annotations

PROPERTIES = {
    "R1": "the scorer counts as EVALB does where EVALB is defined",
    "R2": "the scorer is defined where EVALB is not",
    "R3": "a partial score of the official program is never passed on as a whole one",
    "R4": "a decoded tree is the best one of its chart",
    "R5": "log-partition, marginals, entropy and samples are those of all trees",
    "R6": "the joint decoder finds the best tree and heads, which agree",
    "R7": "transitions reach every tree, and every legal walk ends in one",
    "R8": "losses have the gradients that finite differences have",
    "R9": "kernels do what their plain twins do, and refuse what they cannot take",
    "R10": "padding, batches and order change no parse",
    "R11": "whatever a file holds, readers answer or refuse with its place",
    "R12": "what is written is read as it was",
    "R13": "cycles, missing and double heads are refused",
    "R14": "a checkpoint survives a kill at any moment",
    "R15": "a resumed run is the uninterrupted one, bit by bit",
    "R16": "the same seed gives the same bits",
    "R17": "files of others execute nothing, and are refused within bounds of time and memory",
    "R18": "many processes share one store of records",
    "R19": "a full disk or a failed call loses nothing that was there before",
    "R20": "what an earlier release wrote is read",
    "R21": "sentences of any length are parsed or refused",
    "R22": "each mistake in a recipe or manifest is named before any work",
    "R23": "test data are opened by the evaluation alone",
    "R24": "what was downloaded is what was meant",
    "R25": "a signature changes in the key of what changed, and in no other",
    "R26": "significance is what it says",
    "R27": "memory stays level",
    "R28": "an interrupt ends a run soon, without losing it",
}
