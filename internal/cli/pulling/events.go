// SPDX-License-Identifier: Apache-2.0

package pulling

import (
	"slices"
	"strconv"
	"strings"
)

// Event is what is read of a Kubernetes event about a pod.
type Event struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	InvolvedObject struct {
		FieldPath string `json:"fieldPath"`
	} `json:"involvedObject"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// age is greater the later the event was written: times have whole seconds only.
func (e *Event) age() uint64 {
	n, _ := strconv.ParseUint(e.Metadata.ResourceVersion, 10, 64) // 0 where it is no number: the oldest
	return n
}

// UnderWay is what a pod's events say of a pull for a container that has not ended yet; "" if there is none.
func UnderWay(events []Event, container string) string {
	last := Event{}
	for _, e := range events {
		if strings.HasSuffix(e.InvolvedObject.FieldPath, "{"+container+"}") &&
			slices.Contains([]string{"Pulling", "Pulled", "Failed", "BackOff"}, e.Reason) &&
			e.age() >= last.age() {
			last = e
		}
	}
	if last.Reason != "Pulling" {
		return ""
	}
	return last.Message
}
