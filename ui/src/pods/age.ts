// SPDX-License-Identifier: Apache-2.0

/** age words a duration in milliseconds as kubectl does: "45s", "3m20s", "5h12m", "4d". */
export function age(milliseconds: number): string {
  const s = Math.floor(milliseconds / 1000);
  if (s < -1) {
    return "<invalid>";
  }
  if (s < 120) {
    return `${Math.max(s, 0)}s`;
  }
  const m = Math.floor(s / 60);
  if (m < 10) {
    return two(m, "m", s % 60, "s");
  }
  if (m < 180) {
    return `${m}m`;
  }
  const h = Math.floor(m / 60);
  if (h < 8) {
    return two(h, "h", m % 60, "m");
  }
  if (h < 48) {
    return `${h}h`;
  }
  const d = Math.floor(h / 24);
  if (h < 192) {
    return two(d, "d", h % 24, "h");
  }
  if (d < 365 * 2) {
    return `${d}d`;
  }
  const y = Math.floor(d / 365);
  return d < 365 * 8 ? two(y, "y", d % 365, "d") : `${y}y`;
}

function two(a: number, unit: string, b: number, smaller: string): string {
  return b === 0 ? `${a}${unit}` : `${a}${unit}${b}${smaller}`;
}

/** ageOf words how long ago a time was; "" if there is none. */
export function ageOf(time: string | undefined, now: number): string {
  const at = time ? Date.parse(time) : NaN;
  return Number.isNaN(at) ? "" : age(now - at);
}
