// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/tls"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wherryproject/wherry/internal/api/connect"
)

// clientLifetime is how long an admin's kubeconfig is good. The server writes a new one at every start.
const clientLifetime = 365 * 24 * time.Hour

// AdminKubeconfig makes a kubeconfig for a cluster admin: a new client certificate, everything in the one file.
func (s *Server) AdminKubeconfig() ([]byte, error) {
	certPEM, keyPEM, err := s.ca.Client(adminUser, []string{user.SystemPrivilegedGroup}, clientLifetime)
	if err != nil {
		return nil, err
	}
	const name = "wherry"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: s.URL(), CertificateAuthorityData: s.ca.CertPEM()}
	config.AuthInfos[adminUser] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: adminUser, Namespace: "default"}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

// KubeletClientTLS is how the server shows itself to the nodes' HTTPS APIs, and which certificates of theirs it trusts.
func (s *Server) KubeletClientTLS() *tls.Config { return s.kubeletTLS.Clone() }

// KubeletUser is who this server is towards kubelets.
func (s *Server) KubeletUser() user.Info {
	return &user.DefaultInfo{Name: serverUser, Groups: []string{user.SystemPrivilegedGroup}}
}

// ServeKubelet has this server reach the kubelet of a node, which runs in this process, by dial, where KubeletUser is taken to be
// at the other end. forget undoes it.
func (s *Server) ServeKubelet(nodeName string, dial connect.Dialer) (forget func()) {
	return s.kubelets.Serve(nodeName, dial)
}

func (s *Server) newKubeletTLS() (*tls.Config, error) {
	certPEM, keyPEM, err := s.ca.Client(serverUser, []string{user.SystemPrivilegedGroup}, clientLifetime)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("client certificate towards nodes: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.ca.Pool(), Certificates: []tls.Certificate{pair}}, nil
}
