//! Pieces of CUDA that random sources are made of. A table.
//!
//! `‹a|b|c›` is a choice, `@` the piece's number. An edit chooses anew.

/// Who sees a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Device,
    Host,
}

/// Device code that the small runtime header is enough for.
pub const DEVICE: &[&str] = &[
    "__global__ void ‹|__launch_bounds__(64)|__launch_bounds__(128, 2)|__launch_bounds__(128)|__maxnreg__(32)|__maxnreg__(64)› loop@(float *‹|__restrict__› p, ‹|const› float *‹|__restrict__› q, int n) {\n‹|#pragma unroll 4\n|#pragma unroll 2\n|#pragma unroll 1\n|#pragma unroll\n|#pragma nounroll\n›for (int i = 0; i < ‹n|16|7|n * 2›; i++) p[i] += q[‹i|0|i + 1›] * ‹2.0f|3.5f|0.1f|1e30f›; }",
    "‹static|inline|__noinline__|__forceinline__|extern \"C\"|› __device__ float f@(float x, int n = ‹1|2›) ‹|noexcept› { return x * ‹n|3|x› + ‹0.5f|n›; }\n__global__ void g@(float *p) { p[threadIdx.x] = f@(p[‹0|1|threadIdx.x›]); }",
    "template <‹class T|typename T›, int N> ‹__global__|static __global__› void tk@(T *p, T v) { p[N] = v ‹+|*|-› T(N); }\n‹template __global__ void tk@<int, 2>(int *, int);|void use_tk@() { tk@<float, 3><<<1, 1>>>(nullptr, 1.f); }|void use_tk@() { tk@<long, 1><<<1, 1>>>(nullptr, 1); tk@<char, 0><<<1, 2>>>(nullptr, 'a'); }|auto *at_tk@ = tk@<int, 7>;›",
    "‹static|› ‹__device__|__constant__|__device__ const|__managed__› ‹float|int|double› d@[4] = {‹1, 2, 3|4|-1, 0x7f, 1|›};\n__global__ void rd@(float *p) { p[0] = d@[‹0|1|threadIdx.x & 3›]; }",
    "‹static|› ‹__device__|__constant__› int unused@‹|[8]›;\n‹|void set@(int v) { cudaMemcpyToSymbol(&unused@, &v, 4); }›",
    "struct ‹|alignas(16)|alignas(8)|__attribute__((packed))› S@ { ‹char c; int a;|int a, b;|int a, b, c, d;|double a; char c;› };\n__global__ void cp@(S@ *p, ‹const S@ s|const __grid_constant__ S@ s|S@ s›, int n) { p[n] = s; p[n + 1].a = (&s)->a + ‹1|n›; }",
    "__global__ void as@(unsigned *p) { unsigned x, y; asm ‹|volatile›(\"mov.u32 %0, %%‹clock|laneid|smid›;\" : \"=r\"(x)); asm ‹|volatile›(\"add.u32 %0, %1, ‹1|2›;\" : \"=r\"(y) : \"r\"(x) ‹|: \"memory\"›); p[0] = x + y; }",
    "namespace ‹|m@|m@::deep› { ‹static|› __device__ int v@ = ‹1|2›; __global__ void nk@(int *p) { p[0] = v@++; } }",
    "struct B@ { __host__ __device__ virtual int get(int) const { return ‹1|2›; } int x; };\nstruct D@ ‹|final› : B@ { __host__ __device__ int get(int n) const ‹|override|final› { return x + ‹n|3›; } };\n__global__ void vk@(int *p, int n) { D@ d; B@ b; d.x = n; B@ *q = n > ‹1|2› ? &d : &b; p[0] = q->get(n); }",
    "__global__ void pf@(int n) { printf(\"‹%d|line %d›\\n\", ‹__LINE__|n|7›); ‹|printf(\"%s\\n\", __FILE__);|printf(\"%s\\n\", __func__);|printf(\"%s %s\", __PRETTY_FUNCTION__, \"x\\0y‹a|b›\");› }",
    "__global__ void at@(int *p, int n) { if (!(n > ‹0|1›)) __assert_fail(\"n\", __FILE__, __LINE__, ‹__func__|\"at\"›); p[0] = n; }",
    "‹__host__ __device__|__host__ __device__ inline|constexpr __host__ __device__|constexpr› int hd@(int x) { return x * ‹2|3›; }\n__global__ void hk@(int *p) { p[0] = ‹hd@(p[1])|p[1]›; }\n‹|int call_hd@(int x) { return hd@(x); }›",
    "__global__ void ex@(float *p, int n) { for (int i = 0; i < n; i++) { if (p[i] > ‹3|n›) ‹|[[likely]]|[[unlikely]]› { p[i] = 1; } else { p[i + 1] = 2; asm volatile(\"bar.sync 0;\"); } } }",
    "__global__ void bu@(int *p, int n) { ‹|__builtin_assume(n > 3);|if (n <= 3) __builtin_unreachable();› int *q = ‹p|(int *)__builtin_assume_aligned(p, 16)|(int *)__builtin_assume_aligned(p, 32)›; if (‹n > 2|__builtin_expect(n > 2, 1)|__builtin_expect(n > 2, 0)›) { q[0] = q[1]; q[2] = 4; } else q[3] = __builtin_‹popcount|clz|ffs›(n); }",
    "__global__ void sw@(int *p, int n) { switch (n) { case 1: p[0] = 1; break; ‹|[[likely]]|[[unlikely]]› case 2: p[1] = ‹4|5›; ‹break;|[[fallthrough]];|return;› case ‹7|100|3 ... 9›: p[9] = 2; break; default: p[3] = n; } }",
    "__global__ void la@(int *p, int n) { auto f = [‹=|n|&›](int x) ‹|mutable|-> int› { return x ‹+|*› n; }; p[0] = f(p[‹1|2›]); ‹|auto g = [](auto y) { return y + 1; }; p[4] = g(n); p[5] = g(1.5f);› }",
    "template <class F> __global__ void run@(F f, int *p) { p[threadIdx.x] = f(threadIdx.x); }\nvoid go@(int k) { auto f = [‹=|k›] ‹__device__|__host__ __device__›(int x) { return x + ‹k|1|2 * k›; }; run@<<<1, 1>>>(f, nullptr); ‹|(void)k;›‹|run@<<<1, 2>>>([=] __device__(int x) { return x - k; }, nullptr);› }",
    "__global__ void sh@(float *p, int n) { ‹__shared__ float s[16]|__shared__ alignas(16) float s[16]|extern __shared__ float s[]|static __shared__ float s[32]|extern __shared__ __align__(16) float s[]›; s[n] = p[n]; asm volatile(\"bar.sync 0;\" ::: \"memory\"); p[0] = s[n + ‹1|2›]; }",
    "‹|#pragma nv_abi preserve_n_data(10)\n|#pragma nv_abi preserve_n_data(12)\n›__device__ __noinline__ float ab@(float x) { return x * ‹2|3›; }\n__global__ void ak@(float *p) { p[0] = ab@(p[1]); }",
    "‹static|inline|› __device__ int alone@(int x) { return x + ‹1|2›; }",
    "‹extern \"C\"|› __device__ ‹|__attribute__((const))|__attribute__((pure))|__attribute__((weak))› float weak@(float x) { return x + ‹1|2›; }\n__global__ void wk@(float *p) { p[0] = weak@(p[0]) + weak@(p[0]); }",
    "__device__ double nan@[3] = {‹1.5|__builtin_nan(\"\")|-__builtin_nan(\"\")|__builtin_nan(\"0x5\")|-0.0|0.0|__builtin_inf()|4.9e-324›, ‹0.1|0.10000000000000002|1e300 * 1e300›};\n__global__ void nk@(double *p) { p[0] = nan@[threadIdx.x] + ‹0.1|0x1.999999999999bp-4|1e-310›; }",
    "__device__ ‹char|const char|signed char› str@[] = \"‹abc|a\\0b|\\xff\\x80|\\xff\\x81|a\\\"b›\";\n__global__ void sk@(int *p, int n) { p[0] = str@[n]; }",
    "struct C@ { int v; __host__ __device__ ‹explicit|› C@(int x) : v(x ‹+ 1|* 2›) {} __host__ __device__ C@ operator+(const C@ &o) const { return C@(v + o.v); } static __device__ int twice(int x) { return x * ‹2|3›; } __host__ int on_host() const { return v * ‹5|6›; } };\n__global__ void ck@(int *p) { p[0] = (C@(p[1]) + C@(‹2|3›)).v + C@::twice(p[2]); }",
    "union U@ { float f; ‹int|unsigned› i; };\nstruct Bits@ { ‹unsigned|int› a : ‹3|5›, b : 7; ‹bool c : 1;|› };\nenum ‹class|struct› E@ ‹: char|: unsigned|› { one = ‹1|2›, two };\n__global__ void uk@(float *p, Bits@ *b) { U@ u; u.f = p[0]; u.i &= ‹0x7fffffff|1›; p[0] = u.f; b->a += 1; p[1] = (int)E@::two + b->b; }",
    "template <class... A> __device__ float sum@(A... a) { return (float(a) + ... ‹+ 0.f|+ 1.f›); }\ntemplate <int N> __device__ int pick@(int x) { if constexpr (N > ‹2|1›) return x * N; else return x - N; }\n__global__ void fold@(float *p, int n) { p[0] = sum@(n, 1.f, 2.0) + pick@<‹1|2|3›>(n); }",
    "__global__ void vo@(‹volatile|› int *p, long long n) { p[0] = 1; p[0] = ‹2|1›; p[1] = n / ‹3|n|7› + n % ‹5|8›; p[2] = (‹unsigned|int›)n >> 3; }",
    "typedef float v4@ __attribute__((aligned(‹4|8|16›)));\n__global__ void ta@(float *p, int n) { *(v4@ *)p = *(v4@ *)(p + n) * ‹2|3›; }",
    "static __global__ void ‹|__launch_bounds__(32)› once@(int *p) { p[0] = ‹1|2›; }\n‹|void launch_once@() { once@<<<1, 1>>>(nullptr); }|void launch_once@() { once@<<<2, 1>>>(nullptr); }›",
    "template <class T> struct Traits@ { static constexpr int n = sizeof(T) * ‹1|2›; };\ntemplate <class T> __host__ __device__ T scale@(T x) { return x * T(Traits@<T>::n); }\n__global__ void sc@(float *p) { p[0] = scale@(p[0]); }\n‹|float on_host@(double x) { return scale@(x); }|short on_host@(short x) { return scale@(x); }›",
    "‹|#pragma nv_diag_suppress 177\n|#pragma nv_diag_default 177\n|#pragma GCC diagnostic ignored \"-Wunused\"\n›static __device__ int silent@(int x) { int unused = ‹1|2›; return x; }\n__global__ void dk@(int *p) { p[0] = silent@(p[1]); }",
    "‹|#pragma pack(1)\n|#pragma pack(2)\n›struct P@ { int a; char b; int c; };\n#pragma pack()\n__global__ void pk@(P@ *p, int n) { p[n].c = p[0].a + ‹1|2›; }",
    "#define M@(x) ((x) ‹+|*› ‹1|2›)\n__global__ void mk@(int *p) { p[0] = M@(p[1]) + ‹__COUNTER__|0|(__LINE__ > 5)›; }",
    "struct Local@ { int x; ‹__host__ __device__ ~Local@() {}|› };\n__global__ void lk@(int *p) { static __device__ int hits = ‹1|2›; Local@ l; l.x = p[0]; p[1] = l.x + hits++; }",
];

/// Device code that includes much of the toolkit's headers.
pub const WHOLE: &[&str] = &[
    "#include <cooperative_groups.h>\n__global__ void cg@(int *p) { auto b = cooperative_groups::this_thread_block(); b.sync(); auto t = cooperative_groups::tiled_partition<‹8|16|32›>(b); p[0] = t.shfl_down(p[1], ‹1|2›); }",
    "__global__ void mt@(float *p, double *q) { p[0] = ‹sinf|expf|__expf|sqrtf|rsqrtf|tanhf|erff›(p[1]) / ‹3.0f|p[2]|__fdividef(p[2], 3.f)›; q[0] = ‹pow(q[1], 1.5)|sin(q[1])|fma(q[0], q[1], q[2])|sqrt(q[0])›; }",
    "__global__ void ato@(int *p, float *q) { ‹atomicAdd|atomicMax|atomicExch›(p, ‹1|2›); ‹__syncthreads|__threadfence|__syncwarp›(); q[0] = __shfl_xor_sync(~0u, q[1], ‹1|2›); p[1] = __‹popc|clz|brev›(p[2]); p[3] = __ldg(p + 4); }",
    "__global__ void tx@(cudaTextureObject_t t, cudaSurfaceObject_t s, float *p) { p[0] = tex2D<float>(t, p[1], ‹0.5f|p[2]›); ‹|surf2Dwrite(p[0], s, 4, 2);› }",
    "#include <cassert>\n__global__ void as@(int *p, int n) { assert(n > ‹1|2›); p[0] = n; }",
    "__global__ void ve@(float4 *p, int n) { float4 v = p[n]; v.x += ‹1|2›; v.‹y|w› *= 2; p[0] = v; p[1] = make_float4(‹1, 2|3, 4›, v.z, v.w); }",
    "#include <cuda_fp16.h>\n__global__ void ha@(__half *p) { p[0] = __‹hadd|hmul|hsub›(p[1], __float2half(‹1.5f|2.f›)); }",
];

/// Host code.
pub const HOST: &[&str] = &[
    "‹static inline|int helper@();|› int h@(int x) { return x ‹+|*|-› ‹1|2|33›; }",
    "template <class T> T ht@(T x) { return x * ‹2|3›; }\nint use_ht@() { return ht@(‹1|2.5|'a'›); }",
    "int lambda@(int k) { auto f = [‹=|&›](int x) { return x * ‹k|2›; }; return f(‹1|2›); }",
    "class H@ { public: virtual ~H@() {} virtual int f() { return ‹1|2›; } int m = ‹3|4›; };\nint use_h@(H@ *h) { return h->f() + h->m; }",
    "‹static|› ‹int|const int|double› hv@ = ‹1|2|3›;\nint *at_hv@() { return (int *)&hv@; }",
    "#define HM@ ‹1|2|\"text\"›\n‹auto hm@ = HM@;|›",
    "namespace { int hidden@(int x) { return x ‹+ 1|* 3›; } }\nint seen@() { return hidden@(‹1|2›); }",
    "int alloc@() { void *p = nullptr; ‹|const char *file = __FILE__; (void)file;› if (cudaMalloc(&p, ‹16|32›)) return __LINE__; return cudaFree(p); }",
    "struct HS@ { int a[‹2|3›]; ‹double d;|› };\nint size@() { return sizeof(HS@) ‹|* 2›; }",
    "extern \"C\" int c@(const char *s) { int n = 0; while (*s++ ‹|!= 'x'›) n++; return n; }",
];
