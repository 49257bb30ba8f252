// SPDX-License-Identifier: Apache-2.0

// Kubernetes' quantities: "250m", "1890456n", "3328696Ki", "1.5e3".

const units: Record<string, number> = {
  n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

/** quantity reads one; NaN if it is none. */
export function quantity(text: string | undefined): number {
  const parts = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([KMGTPE]i|[numkMGTPE]|)$/.exec(text ?? "");
  const unit = parts ? units[parts[2]!] : undefined;
  return parts && unit !== undefined ? Number(parts[1]) * unit : NaN;
}

/** bytes words a number of bytes. */
export function bytes(n: number): string {
  if (!Number.isFinite(n)) {
    return "";
  }
  let [value, unit] = [n, 0];
  while (value >= 1024 && unit < 5) {
    value /= 1024;
    unit++;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}
