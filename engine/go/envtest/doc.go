// Package envtest starts kubemu with the calls of controller-runtime's package of the same name, so
// that a suite changes in one import:
//
//   - "sigs.k8s.io/controller-runtime/pkg/envtest"
//   - "github.com/finos/5-spot/engine/go/envtest"
//
// In place of kube-apiserver and etcd, [Environment.Start] starts the program kubemu, which is one
// process, keeps everything in memory and is ready within a fraction of a second. Everything else
// (CRDs, webhooks, certificates) is controller-runtime's own code.
//
// # The program
//
// kubemu is looked for in this order: [APIServer].Path, the variable TEST_ASSET_KUBEMU, the folder
// [Environment].BinaryAssetsDirectory, the folder of the variable KUBEBUILDER_ASSETS, the PATH. It
// ends when it is stopped, and when the process that started it ends in any way.
//
// # What differs
//
// The flags of [APIServer.Configure] are those of `kubemu serve`; it refuses others. There is no
// etcd to configure and no kubectl to run as a user. A user of [Environment.AddUser] is impersonated
// by the administrator, and does not have a certificate of their own.
package envtest
