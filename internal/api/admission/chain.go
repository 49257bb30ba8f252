// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"io"
	"strconv"

	"k8s.io/apiserver/pkg/admission"
)

// chain asks plug-ins in their order, and the mutating ones once more when a webhook or policy wants that because
// another one changed the object (reinvocationPolicy IfNeeded).
func chain(plugins []admission.Interface) (admission.Interface, error) {
	all, names := admission.NewPlugins(), make([]string, len(plugins))
	for i, p := range plugins {
		names[i] = strconv.Itoa(i)
		all.Register(names[i], func(io.Reader) (admission.Interface, error) { return p, nil })
	}
	return all.NewFromPlugins(names, noPluginConfig{}, admission.PluginInitializers{}, nil)
}

// noPluginConfig is an admission.ConfigProvider: the plug-ins come configured.
type noPluginConfig struct{}

// ConfigFor implements admission.ConfigProvider.
func (noPluginConfig) ConfigFor(string) (io.Reader, error) { return nil, nil }
