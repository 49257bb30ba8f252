// SPDX-License-Identifier: Apache-2.0

package api

import (
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/connect"
)

// AdminKubeconfig makes a kubeconfig for a cluster admin: a new client certificate, everything in the one file.
func (s *Server) AdminKubeconfig() ([]byte, error) {
	return s.who.ca.Kubeconfig(s.URL(), authn.AdminUser, []string{user.SystemPrivilegedGroup}, s.cfg.CertLifetime)
}

// KubeletUser is who this server is towards the kubelet of this process, which need not ask it what it may do. To
// others it shows a certificate of the same user without the group.
func (s *Server) KubeletUser() user.Info {
	return &user.DefaultInfo{Name: authn.ServerUser, Groups: []string{user.SystemPrivilegedGroup}}
}

// ServeKubelet has this server reach the kubelet of a node, which runs in this process, by dial, where KubeletUser is
// taken to be at the other end. forget undoes it.
func (s *Server) ServeKubelet(nodeName string, dial connect.Dialer) (forget func()) {
	return s.ways.kubelets.Serve(nodeName, dial)
}

// As is a client configuration for a part of this process: in memory, as the user with the groups, which has the rights
// that roles or the node authorizer give it, and no more. The caller may change its copy.
func (s *Server) As(name string, groups ...string) (*rest.Config, error) {
	token, err := s.who.loopback.Add(name, groups)
	if err != nil {
		return nil, err
	}
	config := s.Loopback()
	config.BearerToken = token
	return config, nil
}
