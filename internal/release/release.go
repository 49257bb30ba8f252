// SPDX-License-Identifier: Apache-2.0

package release

import (
	"runtime/debug"
)

// released is set by the linker (Makefile) to the version of a release.
var released string

// Version is the program's version: the release's, else "devel" with the revision that Go stamped, if any.
func Version() string {
	if released != "" {
		return released
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "devel-" + s.Value[:12]
			}
		}
	}
	return "devel"
}
