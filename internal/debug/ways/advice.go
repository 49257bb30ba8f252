// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// SecurityAdvice says what to do about a refusal of Pod Security: the profile that keeps to the level which the
// namespace enforces, or that no profile helps, as the pod has other containers than the debug container name that do
// not keep to it. It is nothing where the refusal is about something else, or that profile was asked for already.
func SecurityAdvice(refusal, profile, pod, name string) string {
	_, what, found := strings.Cut(refusal, `violates PodSecurity "`)
	if !found {
		return ""
	}
	level, what, _ := strings.Cut(what, ":")
	if level != "restricted" && level != "baseline" {
		return ""
	}
	if others := violators(what, name); len(others) > 0 {
		return fmt.Sprintf("no profile helps, since the pod has containers that violate the level %s themselves (%s): make "+
			"a pod that keeps to it, or lower the namespace's level (the label pod-security.kubernetes.io/enforce)",
			level, strings.Join(others, ", "))
	}
	if profile == level || profile == "restricted" {
		return ""
	}
	return fmt.Sprintf("the namespace only admits what meets the Pod Security level %s: wherry debug --profile %s %s",
		level, level, pod)
}

// violators are the containers besides name that a refusal lists, each once.
func violators(refusal, name string) []string {
	lists, quoted := regexp.MustCompile(`containers? ("[^"]*"(?:, "[^"]*")*)`), regexp.MustCompile(`"([^"]*)"`)
	var others []string
	for _, list := range lists.FindAllStringSubmatch(refusal, -1) {
		for _, q := range quoted.FindAllStringSubmatch(list[1], -1) {
			if q[1] != name && !slices.Contains(others, q[1]) {
				others = append(others, q[1])
			}
		}
	}
	return others
}
