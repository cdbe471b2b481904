"""A server of another project, transformers' own, with a language model that is made and filled at random on the spot."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from dice_envs import configure, make_agent
from dice_envs.agents.chat import Chat
from dice_envs.experiments.arena import play_table

pytestmark = pytest.mark.thorough
MOST_SECONDS = 180  # until the server answers, on a slow machine


def make_model(folder):
    """Write a tiny model of random weights, and a tokenizer that cuts text into bytes."""
    import tokenizers
    import torch
    import transformers

    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {token: number for number, token in enumerate(["<s>", "</s>", *sorted(letters)])}
    cuts = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    cuts.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    cuts.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=cuts, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    tokenizer.chat_template = "{% for each in messages %}{{ each['content'] }}\n{% endfor %}"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    marks = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    config = transformers.LlamaConfig(vocab_size=len(vocabulary), max_position_embeddings=8192, **shape, **marks)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of the server, and the name of its model."""
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("model")
    make_model(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    program = os.path.join(os.path.dirname(sys.executable), "transformers")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, *words], stdout=log, stderr=log, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    try:
        wait_for(f"http://127.0.0.1:{port}/health", process, folder / "log")
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        process.kill()
        process.wait()


def wait_for(url, process, log):
    end = time.monotonic() + MOST_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.5)


@pytest.mark.library("transformers", "its server, with `chat`", game="liars_dice")
def test_a_random_model_plays(server, tmp_path):
    """Its replies are noise: every move is asked for twice, then drawn."""
    url, model = server
    log = tmp_path / "replies.jsonl"
    agent = Chat(model, url, tokens=20, temperature=1.0, at_once=4, seconds=MOST_SECONDS, log=str(log))
    returns = play_table(configure("liars_dice", num_dice=1), [agent, make_agent("random")], 4, 1)
    assert (abs(returns) == 1).all()
    tally = agent.tally
    assert tally.moves >= 4
    assert tally.requests == tally.moves + tally.illegal - tally.random
    assert tally.tokens > 500 * tally.requests, "the server counts the bytes of prompts"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(entries) == tally.requests
    assert all(len(entry["reply"]) <= 20 for entry in entries)
