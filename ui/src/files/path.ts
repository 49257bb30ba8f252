// SPDX-License-Identifier: Apache-2.0

// Paths in containers. Names of files may be any bytes; the page has them escaped, part by part, as the pod tells them,
// and shows them as text.

/** join is the path of a name in a folder. */
export function join(folder: string, name: string): string {
  return clean(`${folder}/${name}`);
}

/** clean is a path as the page has it: from the root on, without parts that say nothing. */
export function clean(path: string): string {
  const out: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") {
      out.pop();
    } else if (part !== "" && part !== ".") {
      out.push(part);
    }
  }
  return "/" + out.join("/");
}

/** parent is the folder that has a path. */
export function parent(path: string): string {
  return clean(path + "/..");
}

/** last is a path's last part, "" of the root. */
export function last(path: string): string {
  return clean(path).split("/").pop()!;
}

/** crumbs are the folders on the way to a path, the root first. */
export function crumbs(path: string): { name: string; path: string }[] {
  const parts = clean(path).split("/").slice(1).filter(Boolean);
  return [{ name: "/", path: "/" }, ...parts.map((name, i) => ({ name, path: "/" + parts.slice(0, i + 1).join("/") }))];
}

/** bytesOf are the bytes of an escaped name. */
export function bytesOf(escaped: string): Uint8Array {
  const text = new TextEncoder().encode(escaped);
  const out: number[] = [];
  for (let i = 0; i < text.length; i++) {
    const hex = text[i] === 0x25 ? parseInt(escapedAt(text, i), 16) : NaN;
    out.push(Number.isNaN(hex) ? text[i]! : hex);
    i += Number.isNaN(hex) ? 0 : 2;
  }
  return Uint8Array.from(out);
}

function escapedAt(text: Uint8Array, i: number): string {
  const two = String.fromCharCode(text[i + 1] ?? 0, text[i + 2] ?? 0);
  return /^[0-9a-fA-F]{2}$/.test(two) ? two : "";
}

/** shown is an escaped name or path as text: what draws nothing, or makes text run backwards, as an escape. */
export function shown(escaped: string): string {
  const bytes = bytesOf(escaped);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    text = Array.from(bytes, (b) => (b < 0x80 ? String.fromCharCode(b) : `\\x${hex(b, 2)}`)).join("");
  }
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => named[c] ?? (c < "\u0100" ? `\\x${hex(c.charCodeAt(0), 2)}` : `\\u${hex(c.codePointAt(0)!, 4)}`));
}

const named: Record<string, string> = { "\n": "\\n", "\t": "\\t", "\r": "\\r", "\u001b": "\\e" };

function hex(n: number, digits: number): string {
  return n.toString(16).padStart(digits, "0");
}

/** typed is a path that a person has written, escaped. */
export function typed(text: string): string {
  return clean(text.split("/").map(escapeName).join("/"));
}

/** escapeName escapes a name that is text. */
export function escapeName(name: string): string {
  return name === "." || name === ".." ? name : encodeURIComponent(name);
}

/** plain is an escaped path as a command takes it; null if it is not text. */
export function plain(escaped: string): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytesOf(escaped));
  } catch {
    return null;
  }
}
