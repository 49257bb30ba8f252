// SPDX-License-Identifier: Apache-2.0

// Package httpapi is the kubelet's HTTPS API (port 10250), so that any Kubernetes API server can reach this node's
// pods: exec, attach, port-forward, logs, pod lists, stats, metrics, health.
//
// [Server] answers; it asks the agent through [Host], reads logs through a [LogReader] and hands streams to the
// container runtime's own streaming server, which the CRI names for each request; a runtime that keeps what containers
// print for those who attach ([Attacher]) gets their streams from here. SPDY goes through untouched. The WebSocket
// protocol that can close stdin is served here for such a runtime's containers and for image exec, and translated for
// what goes to the runtime's own server, which speaks only SPDY and the old WebSocket protocols.
//
// Its law: it decides nothing about pods and keeps nothing. Nobody gets in without a client certificate that the given
// CA signed, and every request is authorised; what starts a process or opens a port always counts as "create", even
// when the request is a GET, as WebSocket requests are. Messages are in the kubelet's words where kubectl users know
// them.
package httpapi
