"""Language models behind any OpenAI-compatible endpoint, asked by prompts that are data.

``prompts``   the bank: one TOML file for each prompt, filled in one pass, never executed
``client``    one request over the network, with retries; ``wire`` reads what came back, ``pace`` says when to go
``cache``     answers on disk, by the content of the request
``batch``     many requests at once, those of the cache first
``clean``     an answer is untrusted text: what is a query in it, and why the rest is not (``forms`` takes it apart)
"""

from askew.reformulators.llm.reformulator import LlmReformulator
from askew.reformulators.llm.usage import Usage

__all__ = ["LlmReformulator", "Usage"]
