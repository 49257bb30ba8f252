// SPDX-License-Identifier: Apache-2.0

package customresources

import (
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/server/healthz"
)

// Checks say whether the custom resources are served, under the names that kube-apiserver has for it. The library's own
// checks of these names look every 100 ms only, and would have the server ready later than it is.
func (r *Server) Checks() (out []healthz.HealthChecker) {
	for _, name := range []string{"start-apiextensions-informers", "start-apiextensions-controllers",
		"crd-informer-synced"} {
		out = append(out, healthz.NamedCheck("poststarthook/"+name, func(*http.Request) error {
			if !r.merged.Load() {
				return errors.New("not finished")
			}
			return nil
		}))
	}
	return out
}
