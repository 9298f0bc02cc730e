"""What run.py checks with --inject: Seam asks every sender for the contract, the scripted upstream fills it in by its
schema, and no client sees anything of that. What upstream got, without what Seam asked and put back, is checked as
without --inject."""
import copy, json

PROPERTY = "handoff"
# Clients that are played beside those of run.py.
CASES = [
    ("openai-agents parallel tool", "oai", ["drive_openai_agents.py"], ["--parallel", "tool"]),
    ("google-adk stream", "adk", ["drive_google_adk.py", "--stream"], []),
    ("ag2 stream", "ag2old", ["drive_ag2.py", "--stream"], []),
]


def declares(case):
    """Whether the client's own tool declares a contract: then nobody is asked for another."""
    return "input_type" in case[2]


def schema_of(tool):
    return tool.get("function", tool)


def asked(tool):
    parameters = schema_of(tool).get("parameters") or {}
    return PROPERTY in (parameters.get("properties") or {})


def without_question(tool, plain):
    """The tool without the property that Seam added; it must be as the client sent it then."""
    own = schema_of(tool)
    parameters = own["parameters"]
    del parameters["properties"][PROPERTY]
    parameters["required"].remove(PROPERTY)
    declared = schema_of(plain).get("parameters")
    if not declared:
        own["parameters"] = declared
        if "parameters" not in schema_of(plain):
            del own["parameters"]
    elif "required" not in declared and not parameters["required"]:
        del parameters["required"]
    if declared and "properties" not in declared and not parameters["properties"]:
        del parameters["properties"]


def calls_of(body):
    for item in body.get("messages") or body.get("input") or []:
        if isinstance(item, dict):
            yield from item.get("tool_calls") or ([item] if item.get("type") == "function_call" else [])


def without_contract(call, plain):
    """Whether the call's arguments hold a contract, which then leaves. Clients that write the arguments anew write
    them with other spaces than the model: `plain` are those that the client sent."""
    function = call.get("function", call)
    try:
        arguments = json.loads(function.get("arguments") or "null")
    except ValueError:
        return False
    if not isinstance(arguments, dict) or PROPERTY not in arguments:
        return False
    del arguments[PROPERTY]
    same = plain is not None and json.loads(plain or "null") == arguments
    function["arguments"] = plain if same else json.dumps(arguments)
    return True


def stripped(direct, seam):
    """What upstream got, as it would have been had nobody been asked; and how many tools were asked, how many calls
    got their contract back, how many briefs carry what a sender wrote."""
    seam = copy.deepcopy(seam)
    tools = calls = briefs = 0
    for d, s in zip(direct, seam):
        plain, got = d["request"]["body"], s["request"]["body"]
        declared = {schema_of(tool).get("name"): tool for tool in plain.get("tools") or []}
        for tool in got.get("tools") or []:
            own = declared.get(schema_of(tool).get("name"), {})
            if asked(tool) and not asked(own):
                without_question(tool, own)
                tools += 1
        own = {call.get("id") or call.get("call_id"): call.get("function", call)["arguments"] for call in calls_of(plain)}
        for call in calls_of(got):
            calls += without_contract(call, own.get(call.get("id") or call.get("call_id")))
        # Of further tools the property is a text that refers to the first's form; the scripted upstream does not follow.
        briefs += "Your task, in the sender's words" in json.dumps(got)
    return seam, tools, calls, briefs
