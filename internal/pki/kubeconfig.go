// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigName is that of cluster and context in the kubeconfigs made here.
const kubeconfigName = "wherry"

// Kubeconfig makes a kubeconfig for a user: a new client certificate, good for ttl, everything in the one file.
func (c *CA) Kubeconfig(server, user string, groups []string, ttl time.Duration) ([]byte, error) {
	cert, key, err := c.Client(user, groups, ttl)
	if err != nil {
		return nil, err
	}
	return WriteKubeconfig(server, c.CertPEM(), user, &clientcmdapi.AuthInfo{ClientCertificateData: cert,
		ClientKeyData: key})
}

// WriteKubeconfig makes a kubeconfig with one cluster, one user and one context; ca is the bundle to know the server
// by.
func WriteKubeconfig(server string, ca []byte, user string, credentials *clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[kubeconfigName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[user] = credentials
	config.Contexts[kubeconfigName] = &clientcmdapi.Context{Cluster: kubeconfigName, AuthInfo: user,
		Namespace: "default"}
	config.CurrentContext = kubeconfigName
	return clientcmd.Write(*config)
}
