import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0008_log_stores'),
    ]

    operations = [
        migrations.CreateModel(
            name='MeshTree',
            fields=[
                ('attempt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='mesh_tree', serialize=False, to='jobs.attempt')),
                ('at', models.DateTimeField()),
                ('latest', models.JSONField()),
                ('changes', models.JSONField(default=list)),
            ],
        ),
    ]
