// SPDX-License-Identifier: Apache-2.0

package node

// declaredFeatures are those of the Kubernetes features that a node has to declare which this agent has, in the order
// that the API asks for (PL-13, KEP-5328). The scheduler gives pods that need one only to nodes that declare it, and
// API servers refuse updates that need one which the pod's node does not; both know them by k8s.io/component-helpers,
// nodedeclaredfeatures/features, which a test holds this list against.
func declaredFeatures() []string {
	return []string{
		// The kubelet's API speaks the WebSocket protocols of exec, attach (v5) and port-forward (SPDY in a tunnel)
		// itself, so that an API server need not translate them (package httpapi).
		"ExtendWebSocketsToKubelet",
		"InPlacePodLevelResourcesVerticalScaling", // a pod's own resources are resized (package work)
		"InPlacePodVerticalScalingInitContainers", // those of an init container that is running too
		"RestartAllContainersOnContainerExits",    // package plan, restartall.go (PL-28)
	}
}
