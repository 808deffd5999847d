"""Dynamic quantisation of ONNX models to 8-bit matrix products, kept in the user's cache."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ulr.encoders.weights import install_command
from ulr.errors import EncoderError
from ulr.files import atomic_folder, sha256, user_cache


def quantised(model: Path, name: str) -> Path:
    """The model with 8-bit weights and activations, created in the user's cache if missing.

    Parameters
    ----------
    model
        ONNX file with float32 weights, or with weights that are only stored in 8 bits.
    name
        Begins the name of the folder in the cache.
    """
    import onnxruntime

    if find_spec("onnx") is None:
        raise EncoderError(
            f"'onnx' is not installed; install it with: {install_command('minilm-int8')}."
        )
    cache = user_cache("onnx")
    folder = cache / f"{name}-{sha256(model)[:16]}-onnxruntime-{onnxruntime.__version__}"
    written, checksum = folder / "model.onnx", folder / "model.sha256"
    if written.is_file() and checksum.is_file() and checksum.read_text() == sha256(written):
        return written
    quantization = import_module("onnxruntime.quantization")
    cache.mkdir(parents=True, exist_ok=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with atomic_folder(folder) as partial:
        plain = partial / "plain.onnx"  # float32 weights, whatever they are stored in
        options.optimized_model_filepath = str(plain)
        onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        quantization.quantize_dynamic(
            plain,
            partial / "model.onnx",
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul"],
        )
        plain.unlink()
        (partial / "model.sha256").write_text(sha256(partial / "model.onnx"))
    return written
