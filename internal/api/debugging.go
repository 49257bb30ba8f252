// SPDX-License-Identifier: Apache-2.0

package api

import (
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/debug/enter"
	"github.com/wherryproject/wherry/internal/debug/imageexec"
	"github.com/wherryproject/wherry/internal/debug/permit"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/debug/session"
)

// debugging is what enters pods, and keeps on record who does.
type debugging struct {
	record  *record.Recorder
	session *session.Debugger
	exec    *enter.Exec
	attach  *enter.Attach
}

// startDebugging makes what debugs pods.
func (s *Server) startDebugging() error {
	pods := connect.NewPods(s.pod, s.ways.kubelets.Locate)
	may := permit.New(s.served.generic.Authorizer, s.judges.admission.Plugins, s.data.schemes.Scheme, s.cfg.Features)
	d := &s.served.debugging
	d.record = record.New(s.data.stores, s.log)
	d.session = session.New(s.data.stores, s.data.schemes, may, d.record, s.log)
	d.exec = enter.NewExec(pods, d.session.Join(pods), imageexec.New(pods, may, d.record, s.judges.quotas), d.record)
	d.attach = enter.NewAttach(pods)
	return nil
}

// addDebugging serves what debugging has of pods.
func (s *Server) addDebugging(core map[string]rest.Storage) {
	d := &s.served.debugging
	d.session.Serve(core, s.cfg.Features)
	core["pods/exec"], core["pods/attach"] = d.exec, d.attach
}
