// SPDX-License-Identifier: Apache-2.0

// Package hook runs a container's lifecycle hooks (PL-04): exec, httpGet, tcpSocket and sleep.
//
// [Runner.Run] runs one handler once, to its end. The law: it does not know whether it runs a postStart or a preStop
// hook, nor what a failure leads to; that is the planner's business. A hook has no time limit of its own, only its
// context, which ends with its container (PL-18). An HTTP hook has succeeded as soon as any response arrives, whatever
// its status, and an HTTPS hook that plain HTTP answers is sent by HTTP, as in Kubernetes; [Notices] tell of that, and
// of sleeps cut off. A TCP hook connects and closes; the kubelet refuses these, but the API takes them.
package hook
