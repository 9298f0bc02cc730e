"""What run.py checks of clients that speak the Responses API: whose requests get the brief and where, and that
upstream gets nothing that it would refuse."""
import json, re

BRIEF = "[Seam handoff "
TRANSFER = re.compile(r"transfer_to|handoff_to")
OWN_TOOL = {"lookup_order": "triage", "issue_refund": "refunds", "send_notification": "notifications"}


def text(content):
    return content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content or [])


def items(body):
    given = body.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def agent_of(body):
    """By its own tool: pydantic-ai leaves the sender's system text in place."""
    names = [tool.get("name") or "" for tool in body.get("tools") or []]
    return next((agent for own, agent in OWN_TOOL.items() if own in names), "?")


def reply(row):
    """The reply as one object; of a stream, what its last event holds."""
    body = row["response"]["body"]
    if isinstance(body, dict):
        return body
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
    return next(e["response"] for e in reversed(events) if e["type"] == "response.completed")


def receivers(rows):
    """Which requests are a receiver's: those of an agent that the reply before moved the run to, until another speaks."""
    out, moved = [], False
    for k, row in enumerate(rows):
        agent = agent_of(row["request"]["body"])
        if k and agent_of(rows[k - 1]["request"]["body"]) != agent:
            calls = [i.get("name") or "" for i in reply(rows[k - 1])["output"]]
            moved = any(TRANSFER.search(name) and name.endswith(agent) for name in calls)
        out.append((agent, moved))
    return out


def slots(body):
    """The standing instructions: of their own field, and at the head of the list."""
    out = [body["instructions"]] if body.get("instructions") else []
    for item in items(body):
        if item.get("role") not in ("system", "developer"):
            break
        out.append(text(item["content"]))
    return out


class Upstream:
    """What a strict upstream keeps, and what it refuses."""

    def __init__(self):
        self.chains, self.items = {}, {}

    def faults(self, body):
        previous, out = body.get("previous_response_id"), []
        if previous and body.get("conversation"):
            out.append("previous_response_id and a conversation")
        if previous and previous not in self.chains:
            out.append(f"404: no reply {previous}")
        whole, waiting = self.chains.get(previous, []) + items(body), []
        for i in whole:
            if i.get("type") == "item_reference" and i["id"] not in self.items:
                out.append(f"404: no item {i['id']}")
            if i.get("type") == "function_call":
                waiting.append(i["call_id"])
                if not (i.get("id") or "fc_").startswith("fc_"):
                    out.append(f"{i['id']} is no id of a call")
            if i.get("type") == "function_call_output":
                if i["call_id"] in waiting:
                    waiting.remove(i["call_id"])
                else:
                    out.append(f"no call for the result {i['call_id']}")
        out += [f"no result for the call {call}" for call in waiting]
        if not any(i.get("role") == "user" for i in whole):
            out.append("no user message")
        return out

    def note(self, row):
        body, answer = row["request"]["body"], reply(row)
        if body.get("store") is not False:
            self.chains[answer["id"]] = self.chains.get(body.get("previous_response_id"), []) + items(body) + answer["output"]
            self.items.update({i["id"]: i for i in answer["output"]})


def check(direct, seam):
    """-> (what is wrong, how many briefs)"""
    if len(direct) != len(seam):
        return [f"{len(seam)} requests through Seam, {len(direct)} without"], 0
    bad, briefs, last, strict, loose = [], 0, {}, Upstream(), Upstream()
    for k, ((agent, received), d, s) in enumerate(zip(receivers(direct), direct, seam)):
        plain, got = d["request"]["body"], s["request"]["body"]
        at = f"request {k + 1} ({agent})"
        # What the client itself sends wrong is the client's.
        own_faults = loose.faults(plain)
        bad += [f"{at}: {fault}" for fault in strict.faults(got) if fault not in own_faults]
        strict.note(s)
        loose.note(d)
        for body in (plain, got):
            # agent-framework offers its transfer tools in another order from run to run.
            body["tools"] = sorted(body.get("tools") or [], key=json.dumps)
        if not received:
            if plain != got:
                bad.append(f"{at}: a sender's request was changed")
            continue
        briefs += 1
        before, after = slots(plain), slots(got)
        carriers = [slot for slot in after if BRIEF in slot]
        own = next((slot for slot in before if carriers and carriers[0].startswith(slot)), None)
        if len(carriers) != 1 or own is None or (any(agent in b for b in before) and agent not in own):
            bad.append(f"{at}: {len(carriers)} briefs, or not behind its own instructions")
            continue
        brief = carriers[0][len(own):]
        if "ord_1001" not in brief or "call_" not in brief:
            bad.append(f"{at}: ord_1001 is not established with its provenance")
        if plain.get("previous_response_id"):
            if items(plain) != items(got) or BRIEF not in (got.get("instructions") or ""):
                bad.append(f"{at}: what goes on from kept state was changed, or the brief is not in instructions")
        else:
            if any(TRANSFER.search(i.get("name") or "") for i in items(got)):
                bad.append(f"{at}: a transfer is left in the list")
            if items(got) and items(got)[-1].get("role") == "assistant":
                bad.append(f"{at}: the list ends in an assistant message")
        hop, shown = (agent, carriers[0]), (items(plain), items(got))
        if hop in last and shown[0][: len(last[hop][0])] == last[hop][0] and shown[1][: len(last[hop][1])] != last[hop][1]:
            bad.append(f"{at}: the beginning differs from the holder's turn before")
        last[hop] = shown
        bad += [f"{at}: field {key} changed" for key in plain
                if key not in ("input", "instructions") and plain[key] != got.get(key)]
    if not briefs:
        bad.append("no receiver got a brief")
    return bad, briefs
