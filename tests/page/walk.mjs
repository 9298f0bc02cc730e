// Walks the page in Chromium; tests/page.sh says how it is run.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";

import { converse, oneMore, upstream } from "./team.mjs";

const { SEAM_BIN, CHROMIUM, SHOTS } = process.env;
const { chromium } = createRequire(path.join(SHOTS, "package.json"))("playwright-core");
const TOKEN = "a-token-of-some-length";

async function freePort() {
  const server = net.createServer();
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

async function start(up, settings = {}) {
  const [port, admin] = [await freePort(), await freePort()];
  const env = {
    SEAM_UPSTREAM: up.url, SEAM_LISTEN: `127.0.0.1:${port}`, SEAM_ADMIN_LISTEN: `127.0.0.1:${admin}`,
    SEAM_LOG: "warn", SEAM_AGENT_HEADER: "x-agent", ...settings,
  };
  const child = spawn(SEAM_BIN, [], { env, stdio: ["ignore", "inherit", "inherit"] });
  const at = { seam: `http://127.0.0.1:${port}`, admin: `http://127.0.0.1:${admin}`, stop: () => child.kill() };
  for (let tries = 0; tries < 200; tries += 1) {
    const ready = await fetch(`${at.admin}/ready`).then((answer) => answer.ok, () => false);
    if (ready) return at;
    await new Promise((soon) => setTimeout(soon, 25));
  }
  throw new Error("Seam does not start");
}

/** A page that notes whatever must not happen in it. */
async function open(browser, at, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(at.admin)) wrong.push(`elsewhere: ${request.url()}`);
  });
  page.wrong = wrong;
  return page;
}

const shot = (page, name) => page.screenshot({ path: path.join(SHOTS, `${name}.png`), fullPage: true });
const focused = (page) => page.evaluate(() => document.activeElement.dataset.step ?? document.activeElement.id);

/** Wider than the window is nothing but what scrolls by itself. */
async function fits(page) {
  const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(inner <= outer, `scrolls sideways: ${inner} in ${outer}`);
}

async function step(name, what) {
  await what();
  console.log(`ok  ${name}`);
}

const SAID = ["Okonjo", "354.00", "stay one night longer", "t.okonjo@mail.example"];

async function walkHidden(browser, up) {
  const at = await start(up);
  try {
    await converse(at.seam, up, "k1");
    const page = await open(browser, at);
    await step("the list shows each transfer once", async () => {
      await page.goto(at.admin);
      assert.equal(new URL(page.url()).pathname, "/page");
      assert.equal(await page.locator(".row").count(), 6);
      await page.waitForSelector(".state.live");
      await shot(page, "list-light");
    });
    await step("signals, states and findings stand in it", async () => {
      const text = await page.locator("#live").innerText();
      for (const words of ["re asked", "repeated lookup", "greeted again", "pending", "taken up"]) {
        assert.ok(text.includes(words), words);
      }
    });
    await step("the graph has agents, counts and its cycle", async () => {
      assert.equal(await page.locator(".graph .node").count(), 3);
      assert.equal(await page.locator(".graph .way").count(), 4);
      assert.equal(await page.locator(".graph .way.cycle").count(), 2);
      assert.ok((await page.locator(".cycles").innerText()).includes("desk → rooms → desk"));
      const counts = await page.locator(".graph .way text").allTextContents();
      assert.deepEqual(counts.map(Number).sort(), [1, 1, 2, 2]);
    });
    await step("search and filters narrow it", async () => {
      await page.keyboard.press("/");
      assert.equal(await focused(page), "search");
      await page.keyboard.type("billing taken");
      await page.waitForFunction(() => document.querySelectorAll(".row").length === 2);
      assert.ok(page.url().endsWith("?q=billing%20taken"));
      await page.keyboard.press("Escape");
      await page.waitForFunction(() => document.querySelectorAll(".row").length === 6);
      await page.keyboard.press("Escape");
      await page.locator(".chip", { hasText: "Asked again" }).click();
      await page.waitForFunction(() => document.querySelectorAll(".row").length === 1);
      await page.goto(`${at.admin}/page?q=nought`);
      assert.ok((await page.locator(".list .empty").innerText()).includes("No transfer has all"));
    });
    await step("keys move, open and come back", async () => {
      await page.goto(`${at.admin}/page`);
      const steps = await page.locator(".row").evaluateAll((rows) => rows.map((row) => row.dataset.step));
      await page.keyboard.press("j");
      assert.equal(await focused(page), steps[0]);
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("j");
      await page.keyboard.press("k");
      assert.equal(await focused(page), steps[1]);
      const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
      assert.equal(outline, "solid");
      await shot(page, "list-focus");
      await page.keyboard.press("Enter");
      await page.waitForURL(`${at.admin}/page/handoffs/${steps[1]}`);
      await page.keyboard.press("j");
      assert.equal(await focused(page), "facts");
      await page.keyboard.press("Escape");
      await page.waitForURL(`${at.admin}/page`);
    });
    await step("Tab goes in the order that is read", async () => {
      await page.goto(`${at.admin}/page`);
      const seen = [];
      for (let n = 0; n < 6; n += 1) {
        await page.keyboard.press("Tab");
        seen.push(await page.evaluate(() => document.activeElement.className || document.activeElement.id));
      }
      assert.deepEqual(seen, ["skip", "brand", "search", "theme", "chip", "chip"]);
    });
    await step("a record tells all but what was said", async () => {
      await page.goto(`${at.admin}/page?q=re_asked`);
      await page.click(".row");
      await page.waitForSelector(".lists");
      const text = await page.locator("main").innerText();
      for (const words of ["desk", "rooms", "verified", "re asked", "left out", "transfer", "The brief"]) {
        assert.ok(text.includes(words), words);
      }
      const html = await page.content();
      for (const words of SAID) assert.ok(!html.includes(words), `shown: ${words}`);
      assert.ok(text.includes("What was said is not shown"));
      await shot(page, "record-hidden-light");
    });
    await step("before and after stand side by side", async () => {
      const lines = await page.locator(".lists .pair").evaluateAll((pairs) =>
        pairs.map((pair) => [...pair.children].map((side) => side.innerText.replace(/\s+/g, " ").trim())));
      assert.deepEqual(lines[0], ["As the client sent it", "As it went up"]);
      const has = (left, right) =>
        assert.ok(lines.some(([a, b]) => left.test(a) && right.test(b)), `${left} ${right}: ${JSON.stringify(lines)}`);
      has(/system/, /the same bytes/);
      has(/^$/, /The brief/);
      has(/user/, /the same bytes/);
      has(/transfer_to_rooms/, /left out transfer/);
      const tops = await page.locator(".lists .pair:nth-child(2) > *").evaluateAll((sides) =>
        sides.map((side) => side.getBoundingClientRect().top));
      assert.equal(tops[0], tops[1]);
    });
    await step("a transfer shows by itself", async () => {
      await page.goto(`${at.admin}/page`);
      await page.waitForSelector(".state.live");
      await oneMore(at.seam, up, "k2", "You are the concierge.");
      await page.waitForFunction(() => document.querySelectorAll(".row").length === 7, null, { timeout: 6000 });
    });
    await step("400 pixels are enough", async () => {
      await page.setViewportSize({ width: 400, height: 800 });
      await page.goto(`${at.admin}/page`);
      await page.waitForSelector(".row");
      await fits(page);
      await shot(page, "list-400");
      await page.goto(`${at.admin}/page?q=re_asked`);
      await page.click(".row");
      await page.waitForSelector(".lists");
      await fits(page);
      await shot(page, "record-400");
    });
    await step("light, dark, and the choice is kept", async () => {
      await page.setViewportSize({ width: 1360, height: 900 });
      const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      await page.goto(`${at.admin}/page`);
      const light = await paper();
      await page.emulateMedia({ colorScheme: "dark" });
      const dark = await paper();
      assert.notEqual(light, dark);
      await shot(page, "list-dark");
      await page.click("#theme");
      assert.equal(await paper(), light);
      await page.reload();
      assert.equal(await paper(), light);
      await page.click("#theme");
      assert.equal(await paper(), dark);
    });
    await step("it reads without scripts", async () => {
      const plain = await open(browser, at, { javaScriptEnabled: false });
      await plain.goto(`${at.admin}/page?q=pending`);
      assert.equal(await plain.locator(".row").count(), 2);
      assert.deepEqual(plain.wrong, []);
    });
    await step("Seam that stops is told", async () => {
      await page.goto(`${at.admin}/page`);
      await page.waitForSelector(".state.live");
      assert.deepEqual(page.wrong, []);
      at.stop();
      await page.waitForSelector(".state.lost", { timeout: 6000 });
    });
  } finally {
    at.stop();
  }
}

async function walkShown(browser, up) {
  const at = await start(up, { SEAM_ADMIN_CONTENT: "on", SEAM_ADMIN_TOKEN: TOKEN });
  try {
    await converse(at.seam, up, "k3");
    await step("the token opens it, as a browser's password", async () => {
      assert.equal((await fetch(`${at.admin}/page`)).status, 401);
      assert.equal((await fetch(`${at.admin}/handoffs`)).status, 404);
    });
    const page = await open(browser, at, { httpCredentials: { username: "me", password: TOKEN } });
    await step("what was said shows where it is allowed", async () => {
      await page.goto(`${at.admin}/page?q=re_asked`);
      await page.waitForSelector(".state.live");
      await page.click(".row");
      await page.waitForSelector(".lists");
      const text = await page.locator("main").innerText();
      for (const words of SAID) assert.ok(text.includes(words), `not shown: ${words}`);
      assert.ok((await page.locator("pre.brief").innerText()).includes("ZT4-991"), "the brief");
      await shot(page, "record-shown-light");
      await page.emulateMedia({ colorScheme: "dark" });
      await shot(page, "record-shown-dark");
      await page.setViewportSize({ width: 400, height: 800 });
      await fits(page);
    });
    await step("markup that somebody wrote is text", async () => {
      assert.ok((await page.locator("main").innerText()).includes("<b>Please</b>"));
      assert.equal(await page.locator("main b").count(), 0);
    });
    await step("nothing was wrong in the browser", async () => {
      const wrong = page.wrong.filter((line) => !line.includes("401"));
      assert.deepEqual(wrong, []);
    });
  } finally {
    at.stop();
  }
}

const up = await upstream();
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: CHROMIUM, args });
try {
  await walkHidden(browser, up);
  await walkShown(browser, up);
  console.log(`The page holds. Screenshots: ${SHOTS}`);
} finally {
  await browser.close();
  up.close();
}
