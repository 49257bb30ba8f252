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
	ServiceCIDRs  []string `json:"serviceCIDRs,omitempty"`
	ClusterCIDRs  []string `json:"clusterCIDRs,omitempty"`
	ClusterDNS    []string `json:"clusterDNS,omitempty"`
	ClusterDomain string   `json:"clusterDomain,omitempty"`
}
