"""Reformulations by a language model behind any OpenAI-compatible endpoint. The prompts are data files.

``prompts``   the prompt bank: one TOML file for each prompt; fields are filled in one pass, and nothing is executed
``client``    one request over the network, with retries; ``wire`` reads the response, ``pace`` limits the rate
``cache``     answers on disk, keyed by the content of the request
``batch``     many concurrent requests; a cached answer needs no request
``clean``     finds the candidates in an answer, which is untrusted text, and counts rejected parts by reason
``forms``     splits an answer into its items
"""

from askew.reformulators.llm.reformulator import LlmReformulator
from askew.reformulators.llm.usage import Usage

__all__ = ["LlmReformulator", "Usage"]
