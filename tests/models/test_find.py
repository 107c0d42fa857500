"""Opening the libraries of models."""

import sys
import threading

from askew.models.find import open_transformers

# As transformers does it: at the end of its import, another module takes the place of the first.
LIBRARY = """
import sys, time, types
time.sleep(0.3)
finished = types.ModuleType(__name__)
finished.__path__ = __path__
finished.AutoModel = object
sys.modules[__name__] = finished
"""


def test_a_library_that_another_thread_is_importing_is_complete_when_it_is_opened(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, name)
    package = tmp_path / "transformers"
    (package / "utils").mkdir(parents=True)
    (package / "__init__.py").write_text(LIBRARY)
    (package / "modeling_gguf_pytorch_utils.py").touch()
    (package / "utils" / "__init__.py").touch()
    (package / "utils" / "logging.py").write_text("def disable_progress_bar(): pass")
    monkeypatch.syspath_prepend(tmp_path)
    first = threading.Thread(target=__import__, args=("transformers",))
    first.start()
    while "transformers" not in sys.modules:
        pass
    assert open_transformers().AutoModel is object
    first.join()
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        del sys.modules[name]
