// SPDX-License-Identifier: Apache-2.0

// Package httpapi is the kubelet's HTTPS API (port 10250), so that any Kubernetes API server can reach this node's
// pods: exec, attach, port-forward, logs, pod lists, stats, metrics, health.
//
// [Server] answers; it asks the agent through [Host] and reads logs through a [LogReader]. Clients' streams are served
// here where the runtime takes them without the CRI ([Execer], [Attacher], [Streams], [Forwarder]), as the embedded one
// does; else they are handed to the runtime's own streaming server, which the CRI names for each request: SPDY goes
// through untouched, the WebSocket protocol that can close stdin is translated, as that server speaks only SPDY and the
// old WebSocket protocols.
//
// Its law: it decides nothing about pods and keeps nothing. Nobody gets in without a client certificate that the given
// CA signed, and every request is authorised; what starts a process or opens a port always counts as "create", even
// when the request is a GET, as WebSocket requests are. Messages are in the kubelet's words where kubectl users know
// them.
package httpapi
