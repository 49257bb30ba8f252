// SPDX-License-Identifier: Apache-2.0

// Package connect hands connections on to where they are served: pods/log, pods/timeline, pods/portforward and the
// proxies of pods, nodes and services; and the streams of processes in pods, for whoever serves them (package
// debug/enter).
//
// Log, Timeline, PortForward, PodProxy, NodeProxy and ServiceProxy are rest.Storage for the API server's table. They
// find objects with a PodGetter and the kubelet with a NodeLocator (Kubelets reads node objects), check the request
// against the pod, and pass the connection on unchanged. [Pods] does so for a [Command]. A client's WebSocket (v5) is
// translated to SPDY for a kubelet that does not support it, so any kubelet will do. RegisterConversions gives a scheme
// the query parameters of all of them.
//
// The law: nothing here keeps state, and whatever can be decided from the pod is refused here, with a message that
// names the pod and the alternatives; only the rest is left for the kubelet to refuse.
package connect
