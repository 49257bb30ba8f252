// SPDX-License-Identifier: Apache-2.0

package api

import (
	"k8s.io/apiserver/pkg/server/mux"

	"github.com/wherryproject/wherry/internal/configz"
)

// addConfigz serves the configuration in effect. As any page that is no resource it takes a right to its path.
func (s *Server) addConfigz(m *mux.PathRecorderMux) {
	m.Handle("/configz", configz.Handler(map[string]any{
		"wherry": configz.Component{FeatureGates: s.cfg.Features.All(), Flags: s.cfg.Flags},
	}))
}
