// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// loopbackClients makes clients of this server's own API for the parts of its process, each as a user of its own with
// the default role of its name. The last error is kept.
type loopbackClients struct {
	server *Server
	err    error
}

// config is never nil, so that what is made of it can be handed on until the error is checked.
func (i *loopbackClients) config(user string) *rest.Config {
	config, err := i.server.parts.api.As(user)
	if err != nil {
		i.err = err
		return &rest.Config{}
	}
	return clientConfig(config, strings.TrimPrefix(strings.TrimPrefix(user, "system:"), "controller:"))
}

func (i *loopbackClients) client(user string) kubernetes.Interface {
	client, err := kubernetes.NewForConfig(i.config(user))
	if err != nil {
		i.err = err
	}
	return client
}

// component makes a client for a part of this process that servers and agents have: with a server, as its own user;
// else as the node.
func (s *Server) component(user, name string) (kubernetes.Interface, error) {
	if s.parts.api == nil {
		return s.client(name)
	}
	users := loopbackClients{server: s}
	client := users.client(user)
	return client, users.err
}
