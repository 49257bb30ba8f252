// SPDX-License-Identifier: Apache-2.0

// Package connect serves the subresources that reach through to a node, a pod or a service: pods/log, pods/timeline,
// pods/exec, pods/attach, pods/portforward, and the proxies of pods, nodes and services.
//
// Log, Timeline, Exec, Attach, PortForward, PodProxy, NodeProxy and ServiceProxy are rest.Storage for the API server's
// table. They find objects with a PodGetter and the kubelet with a NodeLocator (Kubelets reads node objects), check the
// request against the pod, and pass the connection on unchanged. A client's WebSocket (v5) is translated to SPDY for a
// kubelet that does not support it, so any kubelet will do. RegisterConversions gives a scheme the query parameters of
// all of them. Exec goes beyond Kubernetes: with the parameters of a debug session it creates a debug container and
// attaches to it (exec++); with an image it runs a command from that image inside the pod (image exec). Creating,
// checking and recording these is behind the interface Debugging.
//
// The law: nothing here keeps state, and whatever can be decided from the pod is refused here, with a message that
// names the pod and the alternatives; only the rest is left for the kubelet to refuse.
package connect
