// SPDX-License-Identifier: Apache-2.0

package nodenetwork

// Where a node reads what it has to know of the cluster's network.
const (
	Path      = "/node-network"
	PodsPath  = Path + "/pods"
	NodesPath = Path + "/nodes"
)

// Cluster is what [Path] answers.
type Cluster struct {
	// ServiceCIDRs are the networks of services' addresses.
	ServiceCIDRs []string `json:"serviceCIDRs,omitempty"`
	// ClusterDNS are the addresses that pods ask for names, ClusterDomain is where the names of services end.
	ClusterDNS    []string `json:"clusterDNS,omitempty"`
	ClusterDomain string   `json:"clusterDomain,omitempty"`
}
