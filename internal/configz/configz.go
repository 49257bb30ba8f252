// SPDX-License-Identifier: Apache-2.0

package configz

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
)

// Component is what one component shows of itself.
type Component struct {
	FeatureGates map[string]bool   `json:"featureGates"`
	Flags        map[string]string `json:"flags,omitempty"` // as given or by default; see [Flags]
}

// Flags reads every flag's effective value, by name.
func Flags(set *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	set.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			out[f.Name] = shown(f)
		}
	})
	return out
}

// hidden is what is shown in the place of a secret.
const hidden = "(not shown)"

// shown is a flag's value, unless it may be a secret: by the flag's name, or as the password in a URL.
func shown(f *pflag.Flag) string {
	value := f.Value.String()
	names := strings.Split(f.Name, "-")
	for _, word := range []string{"token", "password", "secret", "key"} {
		if names[len(names)-1] == word && value != "" {
			return hidden
		}
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		return u.Redacted()
	}
	return value
}

// Handler serves a page with one entry for each component, as Kubernetes' components do.
func Handler(components map[string]any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		data, err := json.MarshalIndent(components, "", "  ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(data, '\n')) // who has gone does not want to know
	})
}
