// SPDX-License-Identifier: Apache-2.0

package capture

// LeftOut stands for a value that is not in a bundle.
const LeftOut = "<left out: wherry capture --secrets>"

// applied is the annotation in which kubectl apply keeps what it was given, values and all.
const applied = "kubectl.kubernetes.io/last-applied-configuration"

// Mask takes the values of environment variables and of the HTTP headers of probes out of an object as JSON or YAML is
// decoded, whatever it is that has them, and what kubectl apply remembers of it. The object is changed.
func Mask(object any) {
	switch o := object.(type) {
	case []any:
		for _, e := range o {
			Mask(e)
		}
	case map[string]any:
		if annotations, ok := o["annotations"].(map[string]any); ok {
			if _, has := annotations[applied]; has {
				annotations[applied] = LeftOut
			}
		}
		for key, value := range o {
			if list, ok := value.([]any); ok && (key == "env" || key == "httpHeaders") {
				maskValues(list)
			}
			Mask(value)
		}
	}
}

func maskValues(list []any) {
	for _, e := range list {
		if variable, ok := e.(map[string]any); ok {
			if text, ok := variable["value"].(string); ok && text != "" {
				variable["value"] = LeftOut
			}
		}
	}
}
