// A scripted upstream and the conversations that agents have through Seam: a hotel's desk, its rooms and its billing.
import http from "node:http";

const call = (id, name, args) => ({ id, type: "function", function: { name, arguments: JSON.stringify(args) } });
const tool = (name, properties = {}) =>
  ({ type: "function", function: { name, parameters: { type: "object", properties } } });
const calls = (...all) => ({ role: "assistant", content: null, tool_calls: all });
const result = (id, content) =>
  ({ role: "tool", tool_call_id: id, content: typeof content === "string" ? content : JSON.stringify(content) });
const user = (content) => ({ role: "user", content });
const said = (content) => ({ role: "assistant", content });

/** Answers each request with the next reply that it was given. */
export async function upstream() {
  const replies = [];
  const bodies = [];
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      bodies.push(Buffer.concat(chunks).toString());
      const message = replies.shift() ?? said("I do not know.");
      const finish = message.tool_calls ? "tool_calls" : "stop";
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({
        id: "r" + bodies.length, object: "chat.completion", created: 1, model: "m",
        choices: [{ index: 0, message, finish_reason: finish }],
        usage: { prompt_tokens: 900, completion_tokens: 20, total_tokens: 920 },
      }));
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return { url: `http://127.0.0.1:${server.address().port}`, replies, bodies, close: () => server.close() };
}

const agents = {
  desk: ["You are the front desk of the Fennel House. Find the booking, then hand over.",
    [tool("get_booking", { reference: { type: "string" } }), tool("transfer_to_rooms"), tool("transfer_to_billing")]],
  rooms: ["You are rooms. You change stays.",
    [tool("extend_stay", { reference: { type: "string" } }), tool("transfer_to_billing"), tool("transfer_to_desk")]],
  billing: ["You are billing. You explain and settle bills.",
    [tool("get_invoice", { reference: { type: "string" } }), tool("transfer_to_desk")]],
};

/** The conversations; `say` sends an agent's list with the reply that it shall get. */
export async function converse(seam, up, key) {
  async function say(agent, list, reply) {
    const [system, tools] = agents[agent];
    up.replies.push(reply);
    const answer = await fetch(`${seam}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}`, "x-agent": agent },
      body: JSON.stringify({ model: "m", messages: [{ role: "system", content: system }, ...list], tools }),
    });
    if (answer.status !== 200) throw new Error(`${agent}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()).choices[0].message;
  }
  const booking = {
    reference: "ZT4-991", guest: { last_name: "Okonjo", email: "t.okonjo@mail.example" },
    check_in: "2031-07-02", nights: 3, room: "garden twin", total: "354.00",
  };

  // The receiver asks again and looks up again; then the run comes back to the desk.
  let list = [user("Booking ZT4-991, Okonjo. We want to stay one night longer. <b>Please</b> do not move us to another room.")];
  let next = async (agent, reply) => { list.push(await say(agent, list, reply)); };
  await next("desk", calls(call("c1", "get_booking", { reference: "ZT4-991" })));
  list.push(result("c1", booking));
  await next("desk", calls(call("c2", "transfer_to_rooms", {})));
  list.push(result("c2", '{"assistant":"rooms"}'));
  await next("rooms", said("Hello! How can I help you today? May I have your booking reference, please?"));
  list.push(user("ZT4-991, as I said."));
  await next("rooms", calls(call("c3", "extend_stay", { reference: "ZT4-991" })));
  list.push(result("c3", { ...booking, nights: 4, total: "472.00" }));
  await next("rooms", calls(call("c4", "transfer_to_desk", {})));
  list.push(result("c4", '{"assistant":"desk"}'));
  await next("desk", said("Done: four nights, 472.00 in all."));

  // A clean one.
  list = [user("What is on the bill of booking KL2-204?")];
  await next("desk", calls(call("c1", "get_booking", { reference: "KL2-204" })));
  list.push(result("c1", { reference: "KL2-204", guest: { last_name: "Marsh" }, nights: 1, total: "118.00" }));
  await next("desk", calls(call("c2", "transfer_to_billing", {})));
  list.push(result("c2", '{"assistant":"billing"}'));
  await next("billing", said("One night at 118.00, nothing else."));

  // Two hops, and a lookup that was made before.
  list = [user("Booking PX7-310: move us to the courtyard, and tell me what it costs.")];
  await next("desk", calls(call("c1", "get_booking", { reference: "PX7-310" })));
  list.push(result("c1", { reference: "PX7-310", guest: { last_name: "Dube" }, nights: 2, total: "236.00" }));
  await next("desk", calls(call("c2", "transfer_to_rooms", {})));
  list.push(result("c2", '{"assistant":"rooms"}'));
  await next("rooms", calls(call("c3", "transfer_to_billing", {})));
  list.push(result("c3", '{"assistant":"billing"}'));
  await next("billing", calls(call("c4", "get_booking", { reference: "PX7-310" })));

  // Nobody takes it up.
  list = [user("I want to talk to billing.")];
  await next("desk", calls(call("c1", "transfer_to_billing", {})));
}

/** One more transfer, to see it come. */
export async function oneMore(seam, up, key, system) {
  up.replies.push(calls(call("c1", "transfer_to_spa", {})));
  await fetch(`${seam}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "m", tools: [tool("transfer_to_spa")],
      messages: [{ role: "system", content: system }, user("A massage at noon, please.")],
    }),
  });
}
