export function PodView(_: { namespace: string; name: string; tab: string; at: URLSearchParams }) { return null; }
