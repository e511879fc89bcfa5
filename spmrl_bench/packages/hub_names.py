"""What the hub of Hugging Face calls languages and licences."""

from __future__ import annotations

#: ISO 639-1 codes, or 639-3 where there is none, by the English names that manifests have.
LANGUAGES = {
    "afrikaans": "af", "albanian": "sq", "amharic": "am", "ancient greek": "grc", "arabic": "ar",
    "armenian": "hy", "basque": "eu", "belarusian": "be", "bengali": "bn", "breton": "br",
    "bulgarian": "bg", "catalan": "ca", "chinese": "zh", "croatian": "hr", "czech": "cs",
    "danish": "da", "dutch": "nl", "english": "en", "estonian": "et", "faroese": "fo",
    "finnish": "fi", "french": "fr", "galician": "gl", "georgian": "ka", "german": "de",
    "gothic": "got", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu",
    "icelandic": "is", "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja",
    "kazakh": "kk", "korean": "ko", "latin": "la", "latvian": "lv", "lithuanian": "lt",
    "macedonian": "mk", "maltese": "mt", "marathi": "mr", "norwegian": "no", "old english": "ang",
    "persian": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru",
    "sanskrit": "sa", "scottish gaelic": "gd", "serbian": "sr", "slovak": "sk", "slovenian": "sl",
    "spanish": "es", "swedish": "sv", "tamil": "ta", "telugu": "te", "thai": "th", "turkish": "tr",
    "ukrainian": "uk", "urdu": "ur", "uyghur": "ug", "vietnamese": "vi", "welsh": "cy",
}  # fmt: skip

#: Those of its list (docs/hub/repositories-licenses) that data or models are usually under.
LICENCES = frozenset({
    "apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-2.0", "cc-by-2.5",
    "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-2.0", "cc-by-nc-3.0",
    "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0", "cc-by-nc-sa-2.0",
    "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "gpl-2.0", "gpl-3.0", "agpl-3.0", "lgpl-2.1", "lgpl-3.0",
    "lgpl-lr", "odc-by", "odbl", "pddl", "etalab-2.0", "unlicense", "isc",
})  # fmt: skip


def language_code(name: str) -> str | None:
    """The code of a language; None of one that has none here."""
    return LANGUAGES.get(name.lower())


def licence_identifier(text: str) -> str | None:
    """What the hub calls a licence, such as ``cc-by-4.0`` for ``CC BY 4.0``; None of others."""
    found = "-".join(text.lower().split())
    return found if found in LICENCES else None
