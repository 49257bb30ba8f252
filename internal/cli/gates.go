// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/features"
)

// gatesValue parses --feature-gates as Kubernetes components do.
type gatesValue struct{ m *map[string]bool }

var _ pflag.Value = (*gatesValue)(nil)

func (v *gatesValue) Type() string { return "NAME=BOOL,..." }

func (v *gatesValue) String() string {
	var out []string
	for name, on := range *v.m {
		out = append(out, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (v *gatesValue) Set(text string) error {
	if *v.m == nil {
		*v.m = map[string]bool{}
	}
	for _, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || value != "true" && value != "false" {
			return fmt.Errorf("%q is not of the form Name=true or Name=false", part)
		}
		(*v.m)[name] = value == "true"
	}
	return nil
}

// setGates takes from gates those of the API's libraries, whose registry is a global, and switches them; what it
// returns are Wherry's own. A group of gates is both.
func setGates(gates map[string]bool) (own map[string]bool, err error) {
	own, libraries := map[string]bool{}, map[string]bool{}
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	for name, on := range gates {
		_, theirs := known[featuregate.Feature(name)]
		switch {
		case features.Group(name):
			own[name], libraries[name] = on, on
		case features.Known(name):
			own[name] = on
		case theirs:
			libraries[name] = on
		default:
			return nil, cmdline.ExitWith(exitUsage, unknownGate(name, known))
		}
	}
	if len(libraries) == 0 {
		return own, nil
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(libraries); err != nil {
		return nil, cmdline.ExitWith(exitUsage, fmt.Errorf("--feature-gates: %w", err))
	}
	return own, nil
}

func unknownGate(name string, libraries map[featuregate.Feature]featuregate.FeatureSpec) error {
	var theirs []string
	for other := range libraries {
		theirs = append(theirs, string(other))
	}
	slices.Sort(theirs)
	return fmt.Errorf("--feature-gates: unknown feature gate %s\nWherry's feature gates: %s\nfeature gates of the API libraries: %s",
		name, strings.Join(features.Names(), ", "), strings.Join(theirs, ", "))
}
