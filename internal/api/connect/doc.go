// SPDX-License-Identifier: Apache-2.0

// Package connect serves the subresources that reach through to a node, a pod or a service: pods/log, pods/timeline, pods/exec,
// pods/attach, pods/portforward, and the proxies of pods, nodes and services.
//
// Log, Timeline, Exec, Attach, PortForward, PodProxy, NodeProxy and ServiceProxy are rest.Storage for the API server's table.
// They find objects with a PodGetter and the kubelet with a NodeLocator (Kubelets is the one that reads node
// objects), check the request against the pod, and hand the connection over as it is. A client's
// WebSocket (v5) is translated to SPDY towards a kubelet that does not speak it; so any kubelet will do. RegisterConversions gives a
// scheme the query parameters of all of them. Exec has more than Kubernetes: with the parameters of a debug session it has
// a debug container made and attaches to it (exec++), with an image it runs a command of that image inside the pod (image
// exec). What has to be made, checked and recorded for that is behind the interface Debugging.
//
// The law: nothing here keeps state, and whatever can be known from the pod is refused here, in words that name the
// pod and the choice there is; only the rest is left to the kubelet to refuse.
package connect
