// Kernels that compute, for CUDA and OpenCL: `compute_exec.py` and `compute_pocl.py` define the words in capitals.
KERNEL saxpy(float factor, GLOBAL const float *a, GLOBAL float *sum, int n) {
    for (int i = INDEX_X; i < n; i += THREADS_X) sum[i] += factor * a[i];
}
KERNEL bodies(GLOBAL const float4 *places, GLOBAL float4 *forces, int n) {
    int i = INDEX_X;
    float4 here = places[i];
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < n; j++) {
        float4 there = places[j];
        float dx = there.x - here.x, dy = there.y - here.y, dz = there.z - here.z;
        float near = RSQRT(dx * dx + dy * dy + dz * dz + 0.01f), force = there.w * near * near * near;
        x += force * dx;
        y += force * dy;
        z += force * dz;
    }
    forces[i] = FLOAT4(x, y, z, 0);
}
KERNEL mandelbrot(GLOBAL int *steps, int width, int most) {
    int x = INDEX_X, y = INDEX_Y, step = 0;
    float cr = -2 + 3.f * x / width, ci = -1.5f + 3.f * y / width, zr = 0, zi = 0;
    while (step < most && zr * zr + zi * zi < 4) {
        float next = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = next;
        step++;
    }
    steps[y * width + x] = step;
}
KERNEL product(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *c, int n) {
    SHARED float left[16][16], right[16][16];
    int x = LOCAL_X, y = LOCAL_Y, row = INDEX_Y, column = INDEX_X;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 16) {
        left[y][x] = a[row * n + tile + x];
        right[y][x] = b[(tile + y) * n + column];
        BARRIER;
        for (int k = 0; k < 16; k++) sum += left[y][k] * right[k][x];
        BARRIER;
    }
    c[row * n + column] = sum;
}
KERNEL block_sum(GLOBAL const float *a, GLOBAL float *sums, int n) {
    SHARED float cells[256];
    int me = LOCAL_X, i = INDEX_X;
    cells[me] = i < n ? a[i] : 0;
    BARRIER;
    for (int step = 128; step; step >>= 1) {
        if (me < step) cells[me] += cells[me + step];
        BARRIER;
    }
    if (!me) sums[BLOCK_X] = cells[0];
}
#ifdef SHUFFLE
KERNEL warp_sum(GLOBAL const float *a, GLOBAL float *sum, int n) {
    int i = INDEX_X;
    float own = i < n ? a[i] : 0;
    for (int step = 16; step; step >>= 1) own += SHUFFLE(own, step);
    if (!(LOCAL_X & 31)) ATOMIC_ADD(sum, own);
}
#endif
KERNEL histogram(GLOBAL const unsigned char *a, GLOBAL int *counts, int n) {
    SHARED int own[256];
    own[LOCAL_X] = 0;
    BARRIER;
    for (int i = INDEX_X; i < n; i += THREADS_X) ATOMIC_ADD(&own[a[i]], 1);
    BARRIER;
    ATOMIC_ADD(&counts[LOCAL_X], own[LOCAL_X]);
}
KERNEL stencil(GLOBAL const float *a, GLOBAL float *means, int width) {
    int x = INDEX_X, y = INDEX_Y, i = y * width + x;
    if (x > 0 && y > 0 && x < width - 1 && y < width - 1)
        means[i] = 0.2f * (a[i] + a[i - 1] + a[i + 1] + a[i - width] + a[i + width]);
}
KERNEL gather(GLOBAL const float *a, GLOBAL const int *places, GLOBAL float *found, int n) {
    int i = INDEX_X;
    if (i < n) found[i] = a[places[i]];
}
