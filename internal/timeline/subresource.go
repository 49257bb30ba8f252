// SPDX-License-Identifier: Apache-2.0

package timeline

// Subresource is the one of a pod that is its timeline: GET pods/NAME/timeline is a History as JSON; with ?watch=1 a
// stream of JSON lines, the first the whole history and each later one what has changed, to the pod's end; with ?uid=
// of that very pod. It is there for an hour after the pod is gone.
const Subresource = "timeline"

// Causes of a Status that says why there is no timeline. A status without one of them is not about timelines.
const (
	CauseUnbound = "PodWithoutNode"     // it will be there when the pod has a node; the message says why it has none
	CauseUnknown = "NoTimelineOfPod"    // its node, or any node, has not heard of the pod
	CauseNotKept = "NodeWithoutHistory" // the node's agent is not wherry's
)

// Names is the parameter with which a History says which names the pod has looked up.
const Names = "names"
