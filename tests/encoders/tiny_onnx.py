"""Tiny real ONNX models: token vectors plus their sum over a text, times a matrix."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'ulr[minilm-int8]'")

WORDS = "[PAD] [UNK] [CLS] [SEP] query passage : rain sun goal team bank rate the a of".split()
N_DIMS = 8
_RANDOM = np.random.default_rng(0)
TOKEN_VECTORS = _RANDOM.normal(size=(len(WORDS), N_DIMS)).astype(np.float32)
MATRIX = _RANDOM.normal(size=(N_DIMS, N_DIMS)).astype(np.float32)


def hidden_states(text):
    """What the model gives for one text, (n_tokens, n_dims), by NumPy alone."""
    words = ["[CLS]", *text.replace(":", " : ").split(), "[SEP]"]
    ids = [WORDS.index(word) if word in WORDS else 1 for word in words]
    vectors = TOKEN_VECTORS[ids]
    return (vectors + vectors.sum(axis=0)) @ MATRIX


def save_tokenizer(folder):
    """Words in lower case, between [CLS] and [SEP]."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))


def save_model(file, precision=np.float32, output="last_hidden_state", further_input=None):
    """The model as an ONNX file; with `sentence_embedding` the texts' own sums are pooled."""
    make, helper = onnx.helper.make_node, onnx.helper
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(precision))
    nodes = [
        make("Gather", ["tokens", "input_ids"], ["vectors"]),
        make("Cast", ["attention_mask"], ["mask"], to=kind),
        make("Unsqueeze", ["mask", "last"], ["column"]),
        make("Mul", ["vectors", "column"], ["kept"]),
        make("ReduceSum", ["kept", "first"], ["sum"], keepdims=1),
        make("Add", ["vectors", "sum"], ["added"]),
        make("MatMul", ["added", "matrix"], ["last_hidden_state"]),
        make("Squeeze", ["sum", "first"], ["sentence_embedding"]),
    ]
    constants = {
        "tokens": TOKEN_VECTORS.astype(precision),
        "matrix": MATRIX.astype(precision),
        "first": np.array([1], dtype=np.int64),
        "last": np.array([2], dtype=np.int64),
    }
    names = ["input_ids", "attention_mask", *([further_input] if further_input else [])]
    inputs = [helper.make_tensor_value_info(n, onnx.TensorProto.INT64, ["b", "t"]) for n in names]
    outputs = [helper.make_tensor_value_info("last_hidden_state", kind, ["b", "t", N_DIMS])]
    if output == "sentence_embedding":
        outputs.append(helper.make_tensor_value_info(output, kind, ["b", N_DIMS]))
    initial = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    file.parent.mkdir(exist_ok=True)
    onnx.save(model, file)


def save_settings(folder, pooling="mean", prompts=None, default=None, max_tokens=None, **more):
    """The files that sentence-transformers writes beside a model."""
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    contents = {
        "modules.json": modules,
        "1_Pooling/config.json": {f"pooling_mode_{pooling}": True, **more},
        "config_sentence_transformers.json": {
            "prompts": prompts or {},
            "default_prompt_name": default,
        },
        "sentence_bert_config.json": {"max_seq_length": max_tokens},
    }
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content))


def save_folder(folder, file="model.onnx", **settings):
    """A folder that `OnnxEncoder.from_folder` reads, with the settings of sentence-transformers."""
    save_tokenizer(folder)
    save_model(folder / file)
    if settings:
        save_settings(folder, **settings)
    return folder
