// SPDX-License-Identifier: Apache-2.0

package session

import (
	"log/slog"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/debug/permit"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/features"
)

// Debugger makes and stops debug containers.
type Debugger struct {
	pods     *registry.REST
	schemes  *schemes.Schemes
	permit   *permit.Permit
	recorder *record.Recorder
	log      *slog.Logger
}

// New begins nothing by itself.
func New(stores registry.Stores, types *schemes.Schemes, may *permit.Permit, recorder *record.Recorder,
	log *slog.Logger) *Debugger {
	return &Debugger{pods: stores["pods"], schemes: types, permit: may, recorder: recorder, log: log}
}

// Serve serves what debugging adds to pods.
func (d *Debugger) Serve(core map[string]rest.Storage, gates *features.Gates) {
	if gates.Enabled(features.EphemeralContainers) { // off: there is no such subresource (EC-24)
		core["pods/ephemeralcontainers"] = ephemeralREST{d.pods.Sub(d.schemes, kinds.PodEphemeralRules()), d}
	}
	core["pods/"+debugrun.Subresource] = debugREST{d}
}

// Join is the part of a server that joins clients with the debug containers that they ask for.
func (d *Debugger) Join(pods *connect.Pods) *Joiner {
	return &Joiner{pods: pods, make: d.Make}
}
