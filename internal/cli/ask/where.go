// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/datadir"
)

// Where says which server and namespace a command means.
type Where struct {
	Kubeconfig string
	Context    string
	Namespace  string
	DataDir    string
}

// AddFlags adds the flags of w.
func (w *Where) AddFlags(fl *pflag.FlagSet) {
	fl.StringVarP(&w.Namespace, "namespace", "n", "", "namespace of the pod; default: the kubeconfig's")
	w.AddServerFlags(fl)
}

// AddServerFlags is AddFlags for what is in no namespace.
func (w *Where) AddServerFlags(fl *pflag.FlagSet) {
	fl.StringVar(&w.Kubeconfig, "kubeconfig", "", "kubeconfig of the server to use; default: $KUBECONFIG, or this machine's server")
	fl.StringVar(&w.Context, "context", "", "context to use from the kubeconfig")
	fl.StringVar(&w.DataDir, "data-dir", DataDir(), "data folder of this machine's server (also $WHERRY_DATA_DIR)")
}

// DataDir is the data folder of commands that are given none.
func DataDir() string {
	if dir := os.Getenv(datadir.Variable); dir != "" {
		return dir
	}
	return datadir.Default
}
