// SPDX-License-Identifier: Apache-2.0

package wire

import "strings"

// Route is a path of the node's API, with the names of its variables in braces, as net/http's ServeMux reads it.
type Route string

// The paths that other kubelets do not have.
const (
	// RouteImageExec runs a command from an image inside a pod; see [ImageExec].
	RouteImageExec Route = "/imageExec/{namespace}/{pod}"
	// RouteAttachRun attaches to one run of a debug container as soon as it has started; see DC-03.
	RouteAttachRun Route = "/attach/{namespace}/{pod}/{uid}/{container}/{run}"
	// RouteImageNames answers with what the node calls the image with the id in [ParamImage].
	RouteImageNames Route = "/imageNames"
	// RouteTimeline answers with where a pod has spent its time.
	RouteTimeline Route = "/timeline/{namespace}/{pod}"
)

// Word is the first part of the route, by which a path is known for one of its kind.
func (r Route) Word() string {
	word, _, _ := strings.Cut(strings.TrimPrefix(string(r), "/"), "/")
	return word
}

// Path is the route with values for its variables, in their order. A value contains no slash: names and UIDs do not.
func (r Route) Path(values ...string) string {
	parts := strings.Split(string(r), "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") && len(values) > 0 {
			parts[i], values = values[0], values[1:]
		}
	}
	return strings.Join(parts, "/")
}
