"""Plan: the steps in plain words."""

from askew.ui.explorer.plan import plan_of


def test_steps_are_named_in_plain_words_with_their_identifiers(client, store):
    text = client.get("/plan").text
    table = text[text.index('id="table-steps"') :].partition("</table>")[0]
    for words in ("Write reformulations", "Filter reformulations", "Choose pairs", "Held-out figures"):
        assert f">{words}</td>" in table
    nodes = plan_of(store)
    assert table.count('scope="row"') == len(nodes)
    assert all(f"<code>{node.name}</code></a>" in table for node in nodes)
