// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"

	"k8s.io/client-go/informers"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/membership"
	"github.com/wherryproject/wherry/internal/node/credentials"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/store"
)

// parts are what components make for those after them. Each is written by one component's start, and read only by
// components that name it in `after`.
type parts struct {
	lock       *lock
	reserve    *reserve
	files      *connlimit.Descriptors
	etcd       *store.Etcd // nil with an external one
	freshStore bool        // there was none before this start
	api        *api.Server // nil when joining another
	apiLoop    *background
	kubeconfig *background // renews the administrator's
	cluster    cluster
	identity   *credentials.Client   // of the agent, when joining another
	member     membership.Membership // of an agent
	// of the objects that a wherry server shares with its nodes; nil: no such server
	followed    informers.SharedInformerFactory
	runtime     *runtime.Runtime  // nil with an external one
	external    *runtime.External // nil with the embedded one, and with one that is not containerd
	noImageExec string            // why there is none
	cri         *cri.Client
	snapshots   *background // of the embedded etcd
	controllers *background
	nodeipam    *background                     // gives nodes their pod networks
	factory     informers.SharedInformerFactory // the controllers', which run it
	agent       *background
	names       *nameService // nil: pods ask somebody else
	namesLoop   *background
	services    *background     // goes on carrying; nil without a pod network of its own
	proxy       *background     // carries the other services; nil with --service-proxy=none
	routes      *background     // to other nodes' pods; nil without a pod network of its own
	policies    *background     // enforces network policies; nil without a pod network of its own
	carrier     *carrier        // of a server with a pod network of its own
	learnt      *learntNetworks // of an agent that carries a wherry server's services
	host        *http.Server
	watch       *background // of the runtime
	socket      *background // hostapi
	criProxy    *background // CRI socket; nil with an external runtime
	spare       *background // gives memory back
}

func (p *parts) url() string { return p.cluster.url }

// components is the whole server. It starts from the top, what does not wait for one another at the same time, and
// stops from the bottom.
func (s *Server) components() []component {
	return []component{
		{name: "folder", start: s.startFolder, stop: s.stopFolder},
		{name: "checks", after: []string{"folder"}, start: s.check},
		{name: "etcd", after: []string{"checks"}, start: s.startEtcd, stop: s.stopEtcd},
		{name: "records", after: []string{"etcd"}, start: s.checkRecords},
		{name: "api", after: []string{"records"}, start: s.startAPI, stop: s.stopAPI},
		{name: "kubeconfig", after: []string{"api"}, start: s.startKubeconfigs, stop: s.stopKubeconfigs},
		{name: "runtime", after: []string{"checks"}, start: s.startRuntime, stop: s.stopRuntime},
		{name: "controllers", after: []string{"api"}, start: s.startControllers, stop: s.stopControllers},
		{name: "nodeipam", after: []string{"runtime", "controllers"}, start: s.startNodeIPAM, stop: s.stopNodeIPAM},
		{name: "resolver", after: []string{"runtime"}, start: s.startResolver, stop: s.stopResolver},
		{name: "names", after: []string{"resolver", "controllers"}, start: s.startNames, stop: s.stopNames},
		{name: "services", after: []string{"names"}, start: s.startServices, stop: s.stopServices},
		{name: "routes", after: []string{"runtime", "controllers"}, start: s.startRoutes, stop: s.stopRoutes},
		{name: "proxy", after: []string{"services"}, start: s.startProxy, stop: s.stopProxy},
		{name: "policies", after: []string{"services"}, start: s.startPolicies, stop: s.stopPolicies},
		{name: "agent", after: []string{"policies", "routes"}, start: s.startAgent, stop: s.stopAgent},
		{name: "snapshots", after: []string{"etcd"}, start: s.startSnapshots, stop: s.stopSnapshots},
		{name: "sockets", after: []string{"runtime", "api"}, start: s.startSockets, stop: s.stopSockets},
		{name: "spare", after: []string{"folder"}, start: s.startSpare, stop: s.stopSpare},
	}
}

// agentComponents is the agent alone, for another API server.
func (s *Server) agentComponents() []component {
	return []component{
		{name: "folder", start: s.startFolder, stop: s.stopFolder},
		{name: "checks", after: []string{"folder"}, start: s.check},
		{name: "join", after: []string{"checks"}, start: s.join, stop: s.leave},
		{name: "member", after: []string{"join"}, start: s.startMember},
		{name: "runtime", after: []string{"checks", "member"}, start: s.startRuntime, stop: s.stopRuntime},
		{name: "followed", after: []string{"runtime"}, start: s.startFollowed, stop: s.stopFollowed},
		{name: "services", after: []string{"followed"}, start: s.startServices, stop: s.stopServices},
		{name: "routes", after: []string{"followed"}, start: s.startRoutes, stop: s.stopRoutes},
		{name: "proxy", after: []string{"services"}, start: s.startProxy, stop: s.stopProxy},
		{name: "policies", after: []string{"services"}, start: s.startPolicies, stop: s.stopPolicies},
		{name: "agent", after: []string{"policies", "routes"}, start: s.startAgent, stop: s.stopAgent},
		{name: "sockets", after: []string{"runtime", "join"}, start: s.startSockets, stop: s.stopSockets},
		{name: "spare", after: []string{"folder"}, start: s.startSpare, stop: s.stopSpare},
	}
}

func stopAll(ctx context.Context, loops ...*background) error {
	for _, b := range loops {
		if b == nil {
			continue
		}
		if err := b.stop(ctx); err != nil {
			return err
		}
	}
	return nil
}
