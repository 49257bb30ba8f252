// SPDX-License-Identifier: Apache-2.0

package poddebug

import (
	"fmt"
	"strings"
)

// SecurityAdvice says what to do about a refusal of Pod Security: the profile that keeps to the level which the
// namespace enforces. It is nothing where the refusal is about something else, or that profile was asked for already.
func SecurityAdvice(refusal, profile, pod string) string {
	_, level, found := strings.Cut(refusal, `violates PodSecurity "`)
	if !found {
		return ""
	}
	level, _, _ = strings.Cut(level, ":")
	if level != "restricted" && level != "baseline" || profile == level || profile == "restricted" {
		return ""
	}
	return fmt.Sprintf("the namespace takes what keeps to the level %s of Pod Security: wherry debug --profile %s %s",
		level, level, pod)
}
