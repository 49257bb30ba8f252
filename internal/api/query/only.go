// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"slices"
	"strings"
)

// Only refuses a request that has other parameters than those named and those which every request may have: a
// parameter that is passed over might have been a limit.
func (q *Reader) Only(names ...string) {
	var unknown []string
	for name := range q.values {
		if name != "timeout" && name != "pretty" && !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 || q.err != nil {
		return
	}
	slices.Sort(unknown)
	slices.Sort(names)
	known := strings.Join(names, ", ")
	if known == "" {
		known = "none"
	}
	q.err = fmt.Errorf("query parameter %.100q is unknown here; known are: %s", unknown[0], known)
}
