"""Tiny real ONNX models: token vectors plus their sum over a text, times a matrix."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")

WORDS = "[PAD] [UNK] [CLS] [SEP] query passage : rain sun goal team bank rate the a of".split()
N_DIMS = 8
_RANDOM = np.random.default_rng(0)
TOKEN_VECTORS = _RANDOM.normal(size=(len(WORDS), N_DIMS)).astype(np.float32)
MATRIX = _RANDOM.normal(size=(N_DIMS, N_DIMS)).astype(np.float32)
TYPE_VECTORS = _RANDOM.normal(size=(2, N_DIMS)).astype(np.float32)
HEAD = _RANDOM.normal(size=(N_DIMS, 3)).astype(np.float32)
AXES = {"first": np.array([1], dtype=np.int64), "last": np.array([2], dtype=np.int64)}
INPUTS = ("input_ids", "attention_mask")


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


def save_graph(file, nodes, constants, inputs, outputs, kind):
    """An ONNX file of operations, given the shapes of its outputs by name."""
    helper, info = onnx.helper, onnx.helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(kind, given, [made], **more) for kind, given, made, more in nodes],
        "tiny",
        [info(name, onnx.TensorProto.INT64, ["b", "t"]) for name in inputs],
        [info(name, kind, shape) for name, shape in outputs.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in (constants | AXES).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    file.parent.mkdir(exist_ok=True)
    onnx.save(model, file)


def save_model(file, precision=np.float32, output="last_hidden_state", further_input=None):
    """The model as an ONNX file; with `sentence_embedding` the texts' own sums are pooled."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(precision))
    nodes = [
        ("Gather", ["tokens", "input_ids"], "vectors", {}),
        ("Cast", ["attention_mask"], "mask", {"to": kind}),
        ("Unsqueeze", ["mask", "last"], "column", {}),
        ("Mul", ["vectors", "column"], "kept", {}),
        ("ReduceSum", ["kept", "first"], "sum", {"keepdims": 1}),
        ("Add", ["vectors", "sum"], "added", {}),
        ("MatMul", ["added", "matrix"], "last_hidden_state", {}),
        ("Squeeze", ["sum", "first"], "sentence_embedding", {}),
    ]
    constants = {"tokens": TOKEN_VECTORS.astype(precision), "matrix": MATRIX.astype(precision)}
    inputs = (*INPUTS, further_input) if further_input else INPUTS
    outputs = {"last_hidden_state": ["b", "t", N_DIMS]}
    if output == "sentence_embedding":
        outputs[output] = ["b", N_DIMS]
    save_graph(file, nodes, constants, inputs, outputs, kind)


def save_pair_scorer(folder, n_outputs=1, names=None, **settings):
    """A model whose outputs depend on the tokens and on which text of the pair each is from."""
    kind = onnx.TensorProto.FLOAT
    nodes = [
        ("Gather", ["tokens", "input_ids"], "token", {}),
        ("Gather", ["types", "token_type_ids"], "type", {}),
        ("Mul", ["token", "type"], "product", {}),
        ("Cast", ["attention_mask"], "mask", {"to": kind}),
        ("Unsqueeze", ["mask", "last"], "column", {}),
        ("Mul", ["product", "column"], "kept", {}),
        ("ReduceSum", ["kept", "first"], "sum", {"keepdims": 0}),
        ("MatMul", ["sum", "head"], "logits", {}),
    ]
    constants = {"tokens": TOKEN_VECTORS, "types": TYPE_VECTORS, "head": HEAD[:, :n_outputs]}
    inputs, outputs = (*INPUTS, "token_type_ids"), {"logits": ["b", n_outputs]}
    save_graph(folder / "model.onnx", nodes, constants, inputs, outputs, kind)
    save_tokenizer(folder)
    if names is not None:
        config = {"id2label": {str(number): name for number, name in enumerate(names)}}
        (folder / "config.json").write_text(json.dumps(config))
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


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
