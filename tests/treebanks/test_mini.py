"""The files of the mini treebanks are those that fingerprints stand for."""

from __future__ import annotations

import hashlib

from spmrl_bench.storage.paths import data_dir
from spmrl_bench.treebanks.manifest import SPLITS

#: SHA-256 of the files of a language behind each other: of train, dev and test the two layers.
DIGESTS = {
    "arabic": "c8356336337ccaa2868826517bc8f117a19849cdee5ade079eb86a57e5c75bb9",
    "basque": "07ca43dc381c518441dff4ab53f835bb8a829129b6559036967279578c63d727",
    "chinese": "a6ae3c2fe48bb63048501d641cc44ba7b60dd9efbe3cf7321f500c826992cb40",
    "english": "2e4340a3d4810ddfc9cdff41bf4cd83514dd998b7b1c0b12ee282d7dd9aae2ca",
    "french": "9942703fc2a1eab940e538c5e21635b15a30af40f5b6690735129690da83923e",
    "german": "f70e5d87592ea09ca88aa1a41a4deac0dcd18585ead3ee4b5f7d428a26ad3387",
    "hebrew": "004c5ff46273f05efb49cd955b1aa26e062cdaabb0c71141a5f87c33f05ed8c0",
    "hungarian": "f122b7ee4866ef00933e6cb23342ea38f46f7656d7a62518f99b2cdc801a1582",
    "korean": "b38ab69b7078e1dfd40a23f374e69d8aa98131402bca25e667e47341f413b408",
    "polish": "50d53c710df2c8b767cd85a95095ab4891cd6b85bc7e44da23c51a412ea7c117",
    "swedish": "b83b4d11677d35a293a075d2f566f6036eb58cfc6dfdd25d15f6b48af7a2a16c",
}


def test_the_files_are_those_that_fingerprints_stand_for() -> None:
    found = {}
    for folder in sorted((data_dir("treebanks") / "mini").iterdir()):
        names = [f"{split}.{ending}" for split in SPLITS for ending in ("mrg", "conll")]
        assert sorted(names) == sorted(path.name for path in folder.iterdir())
        content = b"".join((folder / name).read_bytes() for name in names)
        found[folder.name] = hashlib.sha256(content).hexdigest()
    assert found == DIGESTS
